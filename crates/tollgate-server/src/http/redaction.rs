//! Subjects in the form in which administrators see them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use tollgate::HashKey;
use tollgate::model::key::Stored;
use tollgate::model::{KeyedHash, Subject};

/// The first character of a displayed hash.
pub(super) const HASH_MARK: char = '#';

/// A subject with its values in clear text, or as their keyed hashes: `#` and 32 hexadecimal
/// digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RedactedSubject(Vec<(Box<str>, Option<String>)>);

/// How values that are not credentials are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redaction {
    /// The values are shown in clear text.
    Clear,
    /// The values are shown as their keyed hashes.
    Hashed,
}

impl RedactedSubject {
    /// Creates a subject that consists of one value in clear text.
    pub(super) fn pair(name: &str, value: String) -> Self {
        Self(vec![(name.into(), Some(value))])
    }

    /// Returns `subject` in its displayed form. Values that look like a hash and values that are
    /// not UTF-8 are hashed.
    pub(super) fn of(subject: &Subject, redaction: Redaction, key: &HashKey) -> Self {
        let shown = |stored| match stored {
            Stored::Absent => None,
            Stored::Hashed(hash) => Some(marked(hash)),
            Stored::Clear(bytes) => Some(match (redaction, std::str::from_utf8(bytes)) {
                (Redaction::Clear, Ok(text)) if !text.starts_with(HASH_MARK) => text.to_owned(),
                _ => marked(&key.hash(bytes)),
            }),
        };
        Self(subject.pairs().map(|(name, stored)| (name.into(), shown(stored))).collect())
    }
}

impl Serialize for RedactedSubject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl JsonSchema for RedactedSubject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Subject".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, Option<String>>::json_schema(generator)
    }
}

fn marked(hash: &[u8]) -> String {
    hash.iter().fold(HASH_MARK.to_string(), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use tollgate::model::Value;

    use super::*;

    #[test]
    fn nothing_is_shown_that_is_not_revealed_and_no_text_passes_for_a_hash() {
        let key = HashKey::from_secret(b"a test's key");
        let pairs = [
            ("user", Value::Clear(b"42")),
            ("bytes", Value::Clear(b"\xff")),
            ("forged", Value::Clear(b"#00")),
            ("token", Value::Secret(b"42")),
            ("none", Value::Absent),
        ];
        let subject = Subject::new(pairs, &key);
        let shown = |redaction| RedactedSubject::of(&subject, redaction, &key).0;
        let hash = marked(&key.hash(b"42"));
        assert_eq!(hash.len(), 33);
        let (clear, hashed) = (shown(Redaction::Clear), shown(Redaction::Hashed));
        assert_eq!(clear[0].1.as_deref(), Some("42"));
        assert_eq!(hashed[0].1, Some(hash.clone()));
        for shown in [&clear, &hashed] {
            assert_eq!(shown[1].1, Some(marked(&key.hash(b"\xff"))));
            assert_eq!(shown[2].1, Some(marked(&key.hash(b"#00"))));
            assert_eq!((&shown[3].1, &shown[4].1), (&Some(hash.clone()), &None));
        }
    }
}
