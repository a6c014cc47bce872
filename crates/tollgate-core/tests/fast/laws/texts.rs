//! The readable form of a subject identifies the subject.

use proptest::prelude::*;
use tollgate_core::key::text::{push_base64, push_readable, push_subject, read_subject};
use tollgate_core::{Subject, Value};

use crate::laws::subjects::{Pairs, Sum, pairs, subject};
use crate::laws::world::config;

fn text(subject: &Subject, kept: &[u8]) -> String {
    let mut text = String::new();
    push_subject(&mut text, subject, kept);
    text
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn a_subject_is_read_back_from_its_text(pairs in pairs()) {
        for kept in [&b""[..], b"-_.:/"] {
            let (whole, text) = (subject(&pairs), text(&subject(&pairs), kept));
            let read = read_subject(&text, &Sum);
            prop_assert!(read.is_some(), "{}", text);
            prop_assert!(read.unwrap().pairs().eq(whole.pairs()), "{}", text);
        }
    }

    #[test]
    fn different_subjects_have_different_texts(one in pairs(), other in pairs()) {
        let text = |pairs: &Pairs| text(&subject(pairs), b"-_.:/");
        let are_equal = text(&one) == text(&other);
        let (one, other) = (subject(&one), subject(&other));
        prop_assert_eq!(are_equal, one.pairs().eq(other.pairs()));
    }

    #[test]
    fn a_text_has_only_letters_digits_separators_and_kept_bytes(pairs in pairs()) {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"%,=~#.".contains(&byte);
        prop_assert!(text(&subject(&pairs), b".").bytes().all(allowed));
    }

    #[test]
    fn texts_that_no_subject_has_are_refused_or_read_as_they_are(text in "[a=,~#%1f]{0,9}") {
        if let Some(subject) = read_subject(&text, &Sum) {
            let again = self::text(&subject, b"");
            prop_assert!(read_subject(&again, &Sum).unwrap().pairs().eq(subject.pairs()));
        }
    }
}

#[test]
fn the_text_of_a_subject_is_readable() {
    let pairs = [
        ("user", Value::Clear(b"4,2\xff")),
        ("a-b", Value::Absent),
        ("key", Value::Hashed([0x01, 0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab])),
    ];
    let subject = Subject::new(pairs, &Sum);
    let hash = "01f000000000000000000000000000ab";
    assert_eq!(text(&subject, b""), format!("user=4%2c2%ff,a%2db~,key#{hash}"));
    assert_eq!(text(&subject, b"-"), format!("user=4%2c2%ff,a-b~,key#{hash}"));
    assert_eq!(text(&Subject::default(), b""), "");
    assert_eq!(read_subject("", &Sum), Some(Subject::default()));
    assert_eq!(read_subject(&format!("user=4%2C2%ff,a-b~,key#{hash}"), &Sum), Some(subject));
}

#[test]
fn a_malformed_text_is_no_subject() {
    let hash = "0".repeat(32);
    for text in ["user", "user=1,", ",user=1", "user~1", "user=%4", "user=%4g", "%ff=1", "user=1,x"]
    {
        assert_eq!(read_subject(text, &Sum), None, "{text}");
    }
    for hash in ["", &hash[1..], &hash[2..], &format!("{hash}00"), &hash.replace('0', "g")] {
        assert_eq!(read_subject(&format!("user#{hash}"), &Sum), None, "{hash}");
    }
}

#[test]
fn base64_is_the_published_one() {
    let text = |bytes| {
        let mut text = String::from("{");
        push_base64(&mut text, bytes);
        text
    };
    assert_eq!(text([0; 16]), "{AAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(text([0xff; 16]), "{_____________________w");
    let counted = core::array::from_fn(|index| index as u8);
    assert_eq!(text(counted), "{AAECAwQFBgcICQoLDA0ODw");
}

#[test]
fn equal_beginnings_have_equal_readable_beginnings() {
    let mut text = String::from("{");
    push_readable(&mut text, b"az AZ09-\0", b"-");
    assert_eq!(text, "{az%20AZ09-%00");
}
