//! Two different subjects never have the same encoding, whatever bytes they contain.

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;
use tollgate_core::key::{MAX_INLINE_VALUE, Stored};
use tollgate_core::{KeyedHash, Subject, Value};

use crate::laws::world::config;

/// A hash for tests, which differs for the few bytes that these tests generate.
pub(crate) struct Sum;

impl KeyedHash for Sum {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let fold = |sum: u128, byte: &u8| {
            (sum ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        };
        bytes.iter().fold(bytes.len() as u128 + 1, fold).to_be_bytes()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owned {
    Absent,
    Clear(Vec<u8>),
    Secret(Vec<u8>),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Absent => Value::Absent,
            Self::Clear(bytes) => Value::Clear(bytes),
            Self::Secret(bytes) => Value::Secret(bytes),
        }
    }
}

pub(crate) type Pairs = Vec<(String, Owned)>;

pub(crate) fn subject(pairs: &Pairs) -> Subject {
    Subject::new(pairs.iter().map(|(name, value)| (&**name, value.value())), &Sum)
}

/// Generates byte strings of few different bytes, including separators. Many of the resulting
/// encodings are similar.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(vec![0, 1, 2, 3, b'=', b',', b'{', b'}', b'\n', b'a', 0xff]);
    prop_oneof![4 => prop::collection::vec(byte, 0..4), 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

pub(crate) fn pairs() -> impl Strategy<Value = Pairs> {
    let value = prop_oneof![
        Just(Owned::Absent),
        bytes().prop_map(Owned::Clear),
        bytes().prop_map(Owned::Secret)
    ];
    let name = prop_oneof![4 => "[a=,\0\x01]{0,3}", 1 => "\\PC{0,200}"];
    prop::collection::vec((name, value), 0..4)
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn subjects_are_equal_when_their_pairs_are(one in pairs(), other in pairs()) {
        prop_assert_eq!(subject(&one) == subject(&other), one == other);
        prop_assert_eq!(subject(&one), subject(&one.clone()));
    }

    #[test]
    fn pairs_come_back(pairs in pairs()) {
        let subject = subject(&pairs);
        let stored: Vec<_> = subject.pairs().collect();
        prop_assert_eq!(stored.len(), pairs.len());
        for ((name, value), (own_name, own)) in stored.iter().zip(&pairs) {
            prop_assert_eq!(name, own_name);
            match own {
                Owned::Absent => prop_assert_eq!(*value, Stored::Absent),
                Owned::Clear(bytes) if bytes.len() <= MAX_INLINE_VALUE => {
                    prop_assert_eq!(*value, Stored::Clear(bytes));
                }
                Owned::Clear(bytes) | Owned::Secret(bytes) => {
                    prop_assert_eq!(*value, Stored::Hashed(&Sum.hash(bytes)));
                }
            }
        }
    }

    #[test]
    fn a_subject_is_its_encoding(one in pairs(), other in pairs()) {
        let (one, other) = (subject(&one), subject(&other));
        let hash = |subject: &Subject| {
            let mut hasher = DefaultHasher::new();
            subject.hash(&mut hasher);
            hasher.finish()
        };
        prop_assert_eq!(one.cmp(&other), one.as_bytes().cmp(other.as_bytes()));
        prop_assert_eq!(one.partial_cmp(&other), Some(one.cmp(&other)));
        prop_assert_eq!(hash(&one) == hash(&other), one == other);
        prop_assert!(Subject::from_bytes(one.as_bytes()).is_some_and(|read| read == one));
        let mut copy = one.clone();
        copy.clone_from(&other);
        prop_assert_eq!(&copy, &other);
        prop_assert_eq!(format!("{one:?}"), format!("Subject({one})"));
    }

    /// Moving a byte from one value to the next gives another subject, because the boundaries
    /// between values are encoded.
    #[test]
    fn moving_a_byte_makes_another_subject(bytes in bytes(), at in any::<prop::sample::Index>()) {
        let all = |cut: usize| vec![
            ("a".to_owned(), Owned::Clear(bytes[..cut].to_vec())),
            ("a".to_owned(), Owned::Clear(bytes[cut..].to_vec())),
        ];
        let cut = at.index(bytes.len() + 1);
        for other in (0..=bytes.len()).filter(|other| *other != cut) {
            prop_assert_ne!(subject(&all(cut)), subject(&all(other)));
        }
    }
}

#[test]
fn a_mebibyte_is_a_short_key() {
    let long = vec![b'x'; 1 << 20];
    let other = vec![b'x'; (1 << 20) - 1];
    let of = |value: &[u8]| Subject::new([("user", Value::Clear(value))], &Sum);
    assert!(of(&long).as_bytes().len() < 64);
    assert_ne!(of(&long), of(&other));
    assert_eq!(of(&long), of(&long.clone()));
}

#[test]
fn a_clear_value_is_never_taken_for_a_hash() {
    let long = vec![b'x'; MAX_INLINE_VALUE + 1];
    let hash = Sum.hash(&long);
    let of = |value| Subject::new([("user", value)], &Sum);
    assert_ne!(of(Value::Clear(&long)), of(Value::Clear(&hash)));
    assert_ne!(of(Value::Clear(&long)), of(Value::Secret(&long)));
    assert_ne!(of(Value::Secret(&hash)), of(Value::Secret(&long)));
}

/// Short subjects are stored without an allocation. The two kinds of storage are never confused.
#[test]
fn a_subject_of_every_length_is_read_back_and_copied() {
    let of = |length: usize| {
        let value = "x".repeat(length);
        Subject::new([("user", Value::Clear(value.as_bytes()))], &Sum)
    };
    for length in 0..MAX_INLINE_VALUE {
        let (one, longer) = (of(length), of(length + 1));
        assert_eq!(Subject::from_bytes(one.as_bytes()).as_ref(), Some(&one), "{length}");
        for source in [&one, &longer] {
            let mut copy = of(length);
            copy.clone_from(source);
            assert_eq!(copy, *source, "{length}");
        }
    }
}
