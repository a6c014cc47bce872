//! The attributes of a request.

use tollgate_core::attributes::Field;
use tollgate_core::policy::JsonPointer;
use tollgate_core::{CertificateName, Headers, RequestAttributes};

type Lines<'a> = [(&'a str, &'a [u8])];

/// Field lines whose `field` is that of the trait.
struct Unindexed<'a>(&'a Lines<'a>);

impl Headers for Unindexed<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.value(name, index)
    }
}

#[test]
fn a_field_is_absent_or_once_or_repeated() {
    let lines: &Lines<'_> = &[("a", b"1"), ("b", b"2"), ("c", b""), ("b", b"2")];
    for (name, field) in [
        ("a", Field::Once(b"1")),
        ("b", Field::Repeated),
        ("c", Field::Once(b"")),
        ("d", Field::Absent),
    ] {
        assert_eq!((lines.field(name), Unindexed(lines).field(name)), (field, field), "{name}");
    }
    assert_eq!(().field("a"), Field::Absent);
}

#[test]
fn only_a_listener_that_reads_them_has_other_values() {
    let pointer = JsonPointer::parse("/model").unwrap();
    let headers: &dyn Headers = &();
    assert_eq!((headers.in_body(&pointer), headers.unread()), (None, None));
    assert_eq!(headers.client_certificate(CertificateName::CommonName), None);
    assert_eq!(headers.application_value("user"), None);
}

#[test]
fn the_debug_text_has_no_credentials() {
    let lines: &Lines<'_> = &[("authorization", b"secret-of-header")];
    let attributes = RequestAttributes {
        method: "GET",
        path: "/items",
        query: Some("key=secret-of-query"),
        host: Some("api.example.com"),
        peer: None,
        headers: &Unindexed(lines),
    };
    let text = format!("{attributes:?}");
    assert!(text.contains("GET") && text.contains("/items") && text.contains("api.example.com"));
    assert!(!text.contains("secret"), "{text}");
}
