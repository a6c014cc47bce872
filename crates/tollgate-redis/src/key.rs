//! The names of keys. A name contains the limit and the subject, but no bytes that a client can
//! choose freely.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use tollgate_core::key::text::{push_base64, push_readable, push_subject, read_subject};
use tollgate_core::{ChargeId, KeyedHash, Limit, Subject};

use crate::slot::Slot;

/// The prefix of all keys, which contains the version of the format of names and values. Each
/// version of the format has a prefix of its own.
pub(crate) const PREFIX: &str = "tg1";

/// The characters in clear-text subjects that are not escaped, in addition to letters and digits.
/// Braces are escaped because they delimit the hash tag.
const UNESCAPED: &[u8] = b"._-:/@";

/// The longest subject in clear text, in bytes. Longer subjects are hashed.
const MAX_CLEAR_SUBJECT_BYTES: usize = 512;

/// The naming scheme of keys: `tg1:<limit>:{<subject>}`, or `tg1:<limit>~<generation>:{<subject>}`
/// if the limit has a generation.
///
/// `<subject>` is the keyed hash of the subject's encoding. If the limit reveals its subjects,
/// `<subject>` is the subject in clear text, and all characters but letters, digits and `. _ - : /
/// @` are escaped. The text in braces is the hash tag for clusters. All limits of one subject have
/// the same hash tag and therefore share a slot, and no client can choose the slot.
///
/// With a [`Tag`], the names are `tg1:<limit>:<subject>{<tag>}`. `<tag>` is the keyed hash of a
/// part of the subject. If `<tag>` covers the whole subject, `<subject>` is left out.
pub struct Keys {
    hash: Box<dyn KeyedHash + Send + Sync>,
    revealed: HashSet<Box<str>>,
    tag: Option<Tag>,
}

/// Selects the part of a subject that determines the cluster slot of its keys. The hash of this
/// part is the hash tag of the keys, so subjects with an equal part share a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    /// The first pair of a name and a value. For example, limits on `token` and limits on `token,
    /// route` share a slot.
    #[default]
    First,
    /// The pair with this name. If a subject has no such pair, the first pair.
    Dimension(Box<str>),
    /// The whole subject. Limits on different parts of a subject are in different slots.
    Whole,
}

impl Keys {
    /// Creates a naming scheme that hashes every subject with `hash`. Nodes that share a server
    /// must use the same hash key.
    pub fn new(hash: impl KeyedHash + Send + Sync + 'static) -> Self {
        Self { hash: Box::new(hash), revealed: HashSet::new(), tag: None }
    }

    /// Returns the same naming scheme, which writes the subjects of the limit called `limit` in
    /// clear text.
    #[must_use]
    pub fn with_revealed(mut self, limit: &str) -> Self {
        self.revealed.insert(limit.into());
        self
    }

    /// Returns the same naming scheme with a hash tag in every key. The hash tag is the keyed hash
    /// of the part of the subject that `tag` selects.
    #[must_use]
    pub fn with_tag(mut self, tag: Tag) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Returns the cluster slot of the keys of `subject`. Without a [`Tag`], keys that contain the
    /// subject in clear text have another slot, and this function returns the slot of the keys that
    /// contain its hash.
    pub(crate) fn slot(&self, subject: &Subject) -> Slot {
        let mut tag = String::with_capacity(22);
        push_base64(&mut tag, self.hash.hash(self.tagged_part(subject)));
        Slot::of(tag.as_bytes())
    }

    /// Appends the subject to `name`. The subject is in clear text if `reveal` selects that and the
    /// text has at most [`MAX_CLEAR_SUBJECT_BYTES`]. In every other case, its hash is appended.
    fn push_subject(&self, name: &mut String, reveal: Reveal, subject: &Subject) {
        let begin = name.len();
        if reveal == Reveal::Clear {
            // A hashed subject never begins with `=`.
            name.push('=');
            push_subject(name, subject, UNESCAPED);
        }
        if name.len() == begin || name.len() > begin + MAX_CLEAR_SUBJECT_BYTES {
            name.truncate(begin);
            push_base64(name, self.hash.hash(subject.as_bytes()));
        }
    }

    /// Returns the `SCAN` pattern for the keys of `limit` with certain subjects in clear text: the
    /// first name of the subject is `dimension`, and the first value begins with `value`. If
    /// `value` is empty, the pattern matches all subjects in clear text.
    pub(crate) fn pattern(&self, limit: &Limit, (dimension, value): (&str, &[u8])) -> String {
        let mut pattern = String::from(PREFIX);
        pattern.push(':');
        pattern.push_str(limit.name());
        if let Some(generation) = limit.generation() {
            let _ = write!(pattern, "~{generation}");
        }
        pattern.push_str(if self.tag.is_none() { ":{=" } else { ":=" });
        if !value.is_empty() {
            push_readable(&mut pattern, dimension.as_bytes(), UNESCAPED);
            pattern.push('=');
            push_readable(&mut pattern, value, UNESCAPED);
        }
        // The pattern excludes the records of refunds, because their names have a suffix after the
        // brace.
        pattern.push_str(if self.tag.is_none() { "*}" } else { "*{*}" });
        pattern
    }

    /// Returns the subject of the key called `name`, if the name contains the subject in clear
    /// text.
    pub(crate) fn revealed_subject(&self, name: &[u8]) -> Option<Subject> {
        let name = std::str::from_utf8(name).ok()?;
        let subject = match self.tag {
            None => name.split_once(":{=")?.1.strip_suffix('}')?,
            Some(_) => name.split_once(":=")?.1.split_once('{')?.0,
        };
        read_subject(subject, &*self.hash)
    }

    fn tagged_part<'a>(&self, subject: &'a Subject) -> &'a [u8] {
        self.tag.as_ref().map_or_else(|| subject.as_bytes(), |tag| tag.part_of(subject))
    }

    /// Returns the name of the key of `limit` for `subject`. Different pairs of a limit and a
    /// subject have different names.
    #[must_use]
    pub fn name(&self, limit: &Limit, subject: &Subject) -> Box<[u8]> {
        let limit_name = limit.name();
        let mut name = String::with_capacity(PREFIX.len() + limit_name.len() + 35);
        name.push_str(PREFIX);
        name.push(':');
        name.push_str(limit_name);
        if let Some(generation) = limit.generation() {
            let _ = write!(name, "~{generation}");
        }
        name.push(':');
        let reveal =
            if self.revealed.contains(limit_name) { Reveal::Clear } else { Reveal::Nothing };
        match &self.tag {
            None => {
                name.push('{');
                self.push_subject(&mut name, reveal, subject);
            }
            Some(tag) => {
                let part = tag.part_of(subject);
                if reveal == Reveal::Clear || part != subject.as_bytes() {
                    self.push_subject(&mut name, reveal, subject);
                }
                name.push('{');
                push_base64(&mut name, self.hash.hash(part));
            }
        }
        name.push('}');
        name.into_bytes().into()
    }
}

/// How a name contains its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reveal {
    /// The name contains the subject in clear text.
    Clear,
    /// The name contains a hash of the subject.
    Nothing,
}

impl Tag {
    fn part_of<'a>(&self, subject: &'a Subject) -> &'a [u8] {
        let first = || subject.encodings().next();
        let pair = match self {
            Self::Whole => return subject.as_bytes(),
            Self::First => first(),
            Self::Dimension(name) => {
                subject.encodings().find(|(named, _)| *named == &**name).or_else(first)
            }
        };
        pair.map_or(&[], |(_, encoding)| encoding)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("revealed", &self.revealed).finish_non_exhaustive()
    }
}

/// Returns whether the key called `name` has its subject in clear text.
pub(crate) fn is_revealed(name: &[u8]) -> bool {
    let mut parts = name.splitn(3, |byte| *byte == b':').skip(2);
    parts.next().is_some_and(|subject| subject.starts_with(b"=") || subject.starts_with(b"{="))
}

/// Returns the name of the key that records the refund of charge `id` on the key called `name`.
pub(crate) fn refund_name(name: &[u8], id: ChargeId) -> Box<[u8]> {
    let mut suffix = String::from(":");
    push_base64(&mut suffix, id.0.to_be_bytes());
    [name, suffix.as_bytes()].concat().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_conformance::PlainHash;
    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Algorithm, Millis, Value};

    use super::*;

    fn limit(name: &str) -> Limit {
        let window = FixedWindow::new(1, Millis::from_secs(1), Anchor::FirstRequest).unwrap();
        Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
    }

    fn text(name: &[u8]) -> &str {
        std::str::from_utf8(name).unwrap()
    }

    #[test]
    fn subjects_are_hashed_unless_the_limit_reveals_them() {
        let hash = PlainHash;
        let keys = Keys::new(hash).with_revealed("open");
        let subject = Subject::new([("user", Value::Clear(b"a{b},c"))], &hash);
        let clear = keys.name(&limit("open"), &subject);
        assert_eq!(text(&clear), "tg1:open:{=user=a%7bb%7d%2cc}");
        let hashed = keys.name(&limit("core"), &subject);
        assert!(text(&hashed).starts_with("tg1:core:{"), "{}", text(&hashed));
        assert_eq!(hashed.len(), "tg1:core:{}".len() + 22);
        let refund = refund_name(&hashed, ChargeId(7));
        assert_eq!(refund.len(), hashed.len() + 23);
    }

    #[test]
    fn whose_key_it_is_is_read_back_from_a_name_that_reveals_it() {
        let hash = PlainHash;
        let value = ("user", Value::Clear(b"a{b},c=~#%".as_slice()));
        let subject =
            Subject::new([value, ("none", Value::Absent), ("key", Value::Secret(b"x"))], &hash);
        for tag in [None, Some(Tag::First)] {
            let keys = Keys { tag, ..Keys::new(hash).with_revealed("open") };
            let name = keys.name(&limit("open"), &subject);
            assert_eq!(keys.revealed_subject(&name).as_ref(), Some(&subject));
            assert_eq!(keys.revealed_subject(&keys.name(&limit("core"), &subject)), None);
        }
        let keys = Keys::new(hash).with_revealed("open");
        assert_eq!(keys.pattern(&limit("open"), ("user", b"a{")), "tg1:open:{=user=a%7b*}");
        assert_eq!(keys.pattern(&limit("open"), ("user", b"")), "tg1:open:{=*}");
        assert_eq!(
            Keys { tag: Some(Tag::First), ..keys }.pattern(&limit("open"), ("user", b"*?[")),
            "tg1:open:=user=%2a%3f%5b*{*}"
        );
        for name in
            [&b"tg1:open:{=user}"[..], b"tg1:open:{=user=%4}", b"tg1:open:{=user#12}", b"\xff"]
        {
            assert_eq!(Keys::new(hash).revealed_subject(name), None);
        }
    }

    #[test]
    fn a_long_subject_is_hashed_whatever_the_limit_says() {
        let hash = PlainHash;
        let keys = Keys::new(hash).with_revealed("open");
        let value = [b'x'; 128];
        let pairs = ["a", "b", "c", "d", "e"].map(|name| (name, Value::Clear(&value)));
        let name = keys.name(&limit("open"), &Subject::new(pairs, &hash));
        assert_eq!(name.len(), "tg1:open:{}".len() + 22);
    }

    #[test]
    fn a_tag_keeps_together_what_a_subject_shares_with_others() {
        let hash = PlainHash;
        let user = ("user", Value::Clear(b"42".as_slice()));
        let route = ("route", Value::Clear(b"/a:b".as_slice()));
        let [alone, both] = [Subject::new([user], &hash), Subject::new([user, route], &hash)];
        let keys = |tag| Keys::new(hash).with_revealed("open").with_tag(tag);
        let tags = [Tag::First, Tag::Dimension("user".into()), Tag::Dimension("none".into())];
        for tag in tags {
            let keys = keys(tag);
            let name = keys.name(&limit("core"), &alone);
            assert_eq!(name, Keys::new(hash).name(&limit("core"), &alone), "all of it is the tag");
            for limit in ["core", "open"].map(limit) {
                for subject in [&alone, &both] {
                    assert_eq!(Slot::of(&keys.name(&limit, subject)), keys.slot(subject));
                    assert_eq!(keys.slot(subject), Slot::of(&name));
                    let refund = refund_name(&keys.name(&limit, subject), ChargeId(7));
                    assert_eq!(Slot::of(&refund), keys.slot(subject));
                }
            }
        }
        let by_route = keys(Tag::Dimension("route".into()));
        assert_ne!(by_route.slot(&both), by_route.slot(&alone));
        assert_ne!(keys(Tag::Whole).slot(&both), keys(Tag::Whole).slot(&alone));
        let clear = by_route.name(&limit("open"), &both);
        assert!(text(&clear).starts_with("tg1:open:=user=42,route=/a:b{"), "{}", text(&clear));
    }

    proptest! {
        #[test]
        fn two_subjects_never_share_a_name(
            one in prop::collection::vec((0_u8..3, prop::collection::vec(any::<u8>(), 0..6)), 0..3),
            other in prop::collection::vec((0_u8..3, prop::collection::vec(any::<u8>(), 0..6)), 0..3),
        ) {
            let hash = PlainHash;
            let keys = [None, Some(Tag::First), Some(Tag::Dimension("m".into())), Some(Tag::Whole)]
                .map(|tag| Keys { tag, ..Keys::new(hash).with_revealed("open") });
            let subject = |pairs: &[(u8, Vec<u8>)]| {
                let values = pairs.iter().map(|(kind, bytes)| match kind {
                    0 => ("n", Value::Absent),
                    1 => ("m", Value::Clear(&bytes[..])),
                    _ => ("n", Value::Secret(&bytes[..])),
                });
                Subject::new(values, &hash)
            };
            let (one, other) = (subject(&one), subject(&other));
            for (limit, keys) in [limit("open"), limit("core")]
                .iter()
                .flat_map(|limit| keys.iter().map(move |keys| (limit, keys)))
            {
                let (first, second) = (keys.name(limit, &one), keys.name(limit, &other));
                prop_assert_eq!(one == other, first == second);
                let braces = first.iter().filter(|byte| b"{}".contains(byte)).count();
                prop_assert_eq!(braces, 2);
            }
        }
    }
}
