//! What clients and operators read about refused requests, invalid settings and failed calls.

use std::collections::BTreeSet;
use std::fmt::Display;

use tollgate_core::json_pointer::{MAX_POINTER_BYTES, MAX_POINTER_STEPS};
use tollgate_core::policy::address::NetworkError;
use tollgate_core::policy::descriptors::LevelError;
use tollgate_core::policy::path::PathPatternError;
use tollgate_core::policy::pattern::PatternError;
use tollgate_core::policy::{
    Ambiguity, JsonPointer, NameError, Network, PathPattern, PointerError, Priority,
};
use tollgate_core::refusal::{MAX_TEMPLATE, MAX_VARIABLES, Template, TemplateError};
use tollgate_core::{LimitError, Millis, Percent, PercentError, StoreError};

#[test]
fn every_ambiguity_has_a_name_and_a_sentence_of_its_own() {
    let mut texts = BTreeSet::new();
    for reason in Ambiguity::ALL {
        let (name, detail) = (reason.name(), reason.detail());
        assert!(!name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'));
        assert!(detail.is_ascii() && !detail.contains(['"', '\\']), "{detail}");
        assert!(detail.starts_with(|it: char| it.is_ascii_uppercase()) && detail.ends_with('.'));
        assert!(texts.insert(name) && texts.insert(detail), "{reason:?}");
    }
}

#[test]
fn an_ambiguity_has_the_status_of_its_cause() {
    for reason in Ambiguity::ALL {
        let status = match reason {
            Ambiguity::BodyLate => 408,
            Ambiguity::BodyTooLarge => 413,
            Ambiguity::BodyType => 415,
            Ambiguity::BodyExpectation => 417,
            Ambiguity::BodyRoom => 503,
            _ => 400,
        };
        assert_eq!(reason.status(), status, "{reason:?}");
    }
}

#[test]
fn every_priority_has_a_name_and_reads_come_before_writes() {
    assert_eq!(Priority::ALL.map(Priority::name), ["test", "read", "write", "critical"]);
    assert!(Priority::ALL.is_sorted());
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert_eq!(Priority::of_method(method), Priority::Read);
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "CONNECT", "get", ""] {
        assert_eq!(Priority::of_method(method), Priority::Write, "{method}");
    }
}

#[test]
fn every_error_has_a_text_of_its_own() {
    fn texts(errors: &[&dyn Display]) {
        let texts: BTreeSet<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), errors.len(), "{texts:?}");
        assert!(texts.iter().all(|text| text.len() > 10 && !text.ends_with('.')), "{texts:?}");
    }
    let (span, because) = (Millis::new(7), "for a reason");
    texts(&[
        &LimitError::Name("a b".into()),
        &LimitError::Zero("quota"),
        &LimitError::TooLarge { what: "quota", given: 9, largest: 8, because },
        &LimitError::PrecisionAboveWindow { precision: span, window: Millis::new(6) },
        &LimitError::RefusalsNotInFlight,
        &LimitError::PermitsAreReservations,
        &LimitError::NoOverdraft,
        &LimitError::NotLeasable { because },
        &LimitError::LeasedCountsRefusals,
        &NetworkError::Syntax,
        &NetworkError::Prefix,
        &NetworkError::Mapped,
        &NetworkError::HostBits,
        &PathPatternError::NotAbsolute,
        &PathPatternError::RestNotLast,
        &PathPatternError::Parameter,
        &PathPatternError::DuplicateParameter,
        &PathPatternError::Wildcard,
        &PathPatternError::NeverMatches,
        &PatternError::NoStar,
        &PatternError::TooManyStars,
        &PointerError::NoSlash,
        &PointerError::Tilde,
        &PointerError::TooLong,
        &PointerError::TooDeep,
        &PercentError,
        &StoreError::Full,
        &StoreError::Unavailable,
        &StoreError::TimedOut,
        &StoreError::NotPermitted,
        &StoreError::Corrupt,
        &NameError::Limit("core".into()),
        &NameError::Dimension("user".into()),
        &NameError::Missing("user".into()),
        &NameError::Empty("user".into()),
        &NameError::Address("user".into()),
        &NameError::Credential("user".into()),
        &NameError::FirstOf("user".into(), "key, ip".into()),
        &NameError::Constant("user".into(), "all".into()),
        &LevelError::EmptyKey,
        &LevelError::Duplicate { first: 1, second: 2, key: "user".into() },
    ]);
}

/// Without the library, a user with exactly the shipped permissions was told to grant them.
#[test]
fn a_missing_library_is_not_reported_only_as_a_missing_permission() {
    let text = StoreError::NotPermitted.to_string();
    for remedy in ["deploy/redis-acl.txt", "tollgate shards --library"] {
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn pointers_have_bounds_and_keep_their_text() {
    let parse = JsonPointer::parse;
    let longest = format!("/{}", "x".repeat(MAX_POINTER_BYTES - 1));
    assert_eq!(parse(&longest).unwrap().as_str(), longest);
    assert_eq!(parse(&format!("{longest}x")), Err(PointerError::TooLong));
    let deepest = "/x".repeat(MAX_POINTER_STEPS);
    assert_eq!(parse(&deepest).unwrap().steps().len(), MAX_POINTER_STEPS);
    assert_eq!(parse(&format!("{deepest}/")), Err(PointerError::TooDeep));
}

#[test]
fn templates_have_bounds() {
    assert_eq!((MAX_TEMPLATE, MAX_VARIABLES), (16_384, 64));
    assert!(Template::parse(&"x".repeat(MAX_TEMPLATE)).is_ok());
    assert_eq!(Template::parse(&"x".repeat(MAX_TEMPLATE + 1)), Err(TemplateError::TooLong));
    assert!(Template::parse(&"{{rule}}".repeat(MAX_VARIABLES)).is_ok());
    let many = "{{rule}}".repeat(MAX_VARIABLES + 1);
    assert_eq!(Template::parse(&many), Err(TemplateError::TooManyVariables));
}

#[test]
fn a_percentage_has_a_number_of_parts() {
    assert_eq!([Percent::NONE, Percent::ALL].map(Percent::parts), [0, 10_000]);
    assert_eq!("12.34%".parse::<Percent>().map(Percent::parts), Ok(1_234));
}

#[test]
fn a_network_lies_within_larger_networks() {
    let network = |text| Network::parse(text).unwrap();
    for (text, prefix, is_ipv4) in
        [("192.0.2.128/25", 25, true), ("2001:db8::/33", 33, false), ("::/0", 0, false)]
    {
        let one = network(text);
        assert_eq!((one.prefix(), one.is_ipv4()), (prefix, is_ipv4));
        assert_eq!(one.within(prefix), Some(one));
        assert_eq!(one.within(prefix + 1), None);
    }
    let (one, larger) = (network("192.0.2.128/25"), network("192.0.0.0/16"));
    assert_eq!((one.within(16), larger.within(25)), (Some(larger), None));
    assert_eq!(one.within(0), Some(network("0.0.0.0/0")));
}

#[test]
fn a_path_pattern_tells_what_it_needs() {
    let pattern = |text| PathPattern::parse(text).unwrap();
    for (text, segments) in [("/", 0), ("/**", 0), ("/a/*/{id}", 3), ("/a/{id}/**", 2)] {
        assert_eq!(pattern(text).min_segments(), segments, "{text}");
    }
    let users = pattern("/users/{id}/{part}");
    assert_eq!(
        ["id", "part", "users", "i"].map(|it| users.has_parameter(it)),
        [true, true, false, false]
    );
    let with = ["/a;b/c", "/a/b;", "/{a}/;b"].map(|text| pattern(text).has_path_parameters());
    assert_eq!(with, [true; 3]);
    assert!(!users.has_path_parameters() && !pattern("/").has_path_parameters());
}
