//! The names of items. A name contains the limit and the subject, but no bytes that a client can
//! choose freely.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use tollgate_core::key::text::{push_base64, push_subject};
use tollgate_core::{ChargeId, KeyedHash, Limit, Subject};

use crate::wire::MAX_KEY;

/// The prefix of all names, which is the version of the name format.
const PREFIX: &str = "tg1";

/// The characters, in addition to letters and digits, that are not escaped in clear-text subjects.
/// Colons are escaped because they separate the fields of a name.
const UNESCAPED: &[u8] = b"._-/@";

/// The suffix that turns the name of a window's count into the name of its reset item.
const RESET: &str = ":reset_at";

/// The number of bytes that the name of a refund item has in addition to the name of its limit
/// item: a colon and 22 characters.
const REFUND: usize = 23;

/// The longest item name that leaves room for the suffix of a refund item.
const LONGEST: usize = MAX_KEY - REFUND;

/// The naming scheme of items: `tg1:<limit>:<subject>`, or `tg1:<limit>~<generation>:<subject>` if
/// the limit has a generation.
///
/// `<subject>` is the keyed hash of the subject's encoding. If the limit reveals its subjects,
/// `<subject>` is the subject in clear text, and all characters but letters, digits and `. _ - / @`
/// are escaped. Names contain neither spaces nor control bytes and have at most 250 bytes, whatever
/// a client sends.
pub struct Keys {
    hash: Box<dyn KeyedHash + Send + Sync>,
    revealed: HashSet<Box<str>>,
}

impl Keys {
    /// Creates a naming scheme that hashes every subject with `hash`. Nodes that share a server
    /// must use the same hash key.
    pub fn new(hash: impl KeyedHash + Send + Sync + 'static) -> Self {
        Self { hash: Box::new(hash), revealed: HashSet::new() }
    }

    /// Returns the same naming scheme, which writes the subjects of the limit called `limit` in
    /// clear text. Subjects that are too long are still hashed.
    #[must_use]
    pub fn with_revealed(mut self, limit: &str) -> Self {
        self.revealed.insert(limit.into());
        self
    }

    /// Returns the name of the item of `limit` for `subject`. Different pairs of a limit and a
    /// subject have different names.
    #[must_use]
    pub fn name(&self, limit: &Limit, subject: &Subject) -> Box<[u8]> {
        let limit_name = limit.name();
        let mut name = format!("{PREFIX}:{limit_name}");
        if let Some(generation) = limit.generation() {
            let _ = write!(name, "~{generation}");
        }
        name.push(':');
        let subject_from = name.len();
        if self.revealed.contains(limit_name) {
            // A hashed subject never begins with `=`.
            name.push('=');
            push_subject(&mut name, subject, UNESCAPED);
        }
        if name.len() == subject_from || name.len() > LONGEST {
            name.truncate(subject_from);
            push_base64(&mut name, self.hash.hash(subject.as_bytes()));
        }
        name.into_bytes().into()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("revealed", &self.revealed).finish_non_exhaustive()
    }
}

/// Returns the name of the reset item of a window. `name` is the name of the window's count item.
pub(crate) fn reset_name(name: &[u8]) -> Box<[u8]> {
    [name, RESET.as_bytes()].concat().into()
}

/// Returns the name of the item that records the refund of charge `id` on the item called `name`.
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
        let keys = Keys::new(PlainHash).with_revealed("open");
        let subject = Subject::new([("user", Value::Clear(b"a:b c"))], &PlainHash);
        assert_eq!(text(&keys.name(&limit("open"), &subject)), "tg1:open:=user=a%3ab%20c");
        let hashed = keys.name(&limit("core"), &subject);
        assert_eq!(hashed.len(), "tg1:core:".len() + 22);
        assert_eq!(text(&reset_name(&hashed)), format!("{}:reset_at", text(&hashed)));
        assert_eq!(refund_name(&hashed, ChargeId(7)).len(), hashed.len() + REFUND);
        let everybody = keys.name(&limit("open"), &Subject::default());
        assert_eq!(text(&everybody), "tg1:open:=");
    }

    proptest! {
        #[test]
        fn names_are_what_memcached_takes_and_different(
            one: Vec<(bool, Vec<u8>)>, other: Vec<(bool, Vec<u8>)>, name in "[a-z.]{1,64}"
        ) {
            let keys = Keys::new(PlainHash).with_revealed(&name);
            let subject = |pairs: &[(bool, Vec<u8>)]| {
                let value = |(absent, bytes)| if absent { Value::Absent } else { Value::Clear(bytes) };
                let pairs = pairs.iter().map(|(absent, bytes)| ("d", value((*absent, &bytes[..]))));
                Subject::new(pairs, &PlainHash)
            };
            let (one, other) = (subject(&one), subject(&other));
            for limit in [limit(&name), limit("hashed-one")] {
                let (first, second) = (keys.name(&limit, &one), keys.name(&limit, &other));
                prop_assert_eq!(one == other, first == second);
                for made in [refund_name(&first, ChargeId(u128::MAX)), reset_name(&first)] {
                    prop_assert!(made.len() <= MAX_KEY);
                    prop_assert!(made.iter().all(u8::is_ascii_graphic));
                    prop_assert_ne!(&made, &second);
                }
            }
        }
    }
}
