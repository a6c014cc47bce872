//! Tests of the meters. The expected values come from a parser that reads whole responses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use proptest::prelude::*;
use tollgate_core::policy::{JsonPointer, Meter};
use tollgate_core::{Cost, Millis};

use super::follower::{Follower, Found};
use super::watch::{Watch, value_at};

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

/// Returns the values at the pointer `at` in a document that arrives in `pieces`.
fn found<'d>(at: &str, pieces: impl IntoIterator<Item = &'d [u8]>) -> Vec<String> {
    let pointer = pointer(at);
    let mut follower = Follower::default();
    let mut found = Vec::new();
    for piece in pieces {
        follower.push(pointer.steps(), piece, &mut |one| match one {
            Found::Text(text) | Found::Number(text) => found.push(text.to_owned()),
            Found::Repeated => {}
        });
    }
    found
}

fn at(at: &str, document: &str) -> Vec<String> {
    found(at, [document.as_bytes()])
}

#[test]
fn values_are_found_where_the_pointer_leads_and_nowhere_else() {
    let answer = r#" {"id":"x","usage" : {"in":3 ,"total_tokens":731},"more":[{"usage":9},[1,2]]}"#;
    assert_eq!(at("/usage/total_tokens", answer), ["731"]);
    assert_eq!(at("/id", answer), ["x"]);
    assert_eq!(at("/more/1/0", answer), ["1"]);
    assert_eq!(at("/more/0/usage", answer), ["9"]);
    for missing in ["/usage", "/total_tokens", "/more/2", "/more/00/usage", "/more/+1/0", "/id/0"] {
        assert!(at(missing, answer).is_empty(), "{missing}");
    }
    assert_eq!(at("/a/b", r#"{"x":"{\"a\":{\"b\":1}}","a":{"c":{"b":2},"b":3}}"#), ["3"]);
    assert_eq!(at("/a", r#"{"a":1,"a":2}"#), ["1", "2"]);
    assert_eq!(at("/ä~1/é😀", r#"{"\u00e4\/":{"\u00E9\ud83d\ude00":"\n\"\\"}}"#), ["\n\"\\"]);
}

#[test]
fn what_is_no_json_or_is_cut_off_reports_nothing_more() {
    for broken in [
        "",
        "a",
        "}",
        "[DONE]",
        "{1:2,\"a\":3}",
        "{\"a\"}",
        "{\"b\":1]\"a\":2}",
        "\"a\":1",
        "{\"a\":1",
    ] {
        assert!(at("/a", broken).is_empty(), "{broken}");
    }
    assert_eq!(at("/a", "{\"a\":1}{\"a\":2}"), ["1"]);
}

#[test]
fn an_answer_is_read_alike_wherever_it_is_cut() {
    let answer =
        r#"{"text":"a \"quoted\" \u00e9 {[","n":[0,[1],{"total":12}],"usage":{"total":-7}}"#;
    for cut in 0..=answer.len() {
        let (one, other) = answer.as_bytes().split_at(cut);
        assert_eq!(found("/n/2/total", [one, other]), ["12"], "{cut}");
        assert_eq!(found("/usage/total", [one, other]), ["-7"], "{cut}");
    }
}

#[test]
fn hostile_documents_are_skipped_without_being_kept() {
    let deep = format!("{{\"a\":{}{}, \"b\":1}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(at("/b", &deep), ["1"]);
    let long = format!("{{\"{0}\":2,\"t\":\"{0}\",\"b\":1}}", "k".repeat(1_000_000));
    assert_eq!(at("/b", &long), ["1"]);
    assert!(at("/t", &long).is_empty());
    let digits = format!("{{\"b\":{}}}", "9".repeat(1_000_000));
    assert!(at("/b", &digits).is_empty());
}

fn in_document(at: &str, document: &str) -> Option<String> {
    value_at(document.as_bytes(), &pointer(at))
}

/// A regression test: an unreadable last member left the value of an earlier one in force.
#[test]
fn a_value_of_a_repeated_member_is_not_read() {
    for document in [
        r#"{"a":{"b":"decoy"},"a":{"b":"real"}}"#,
        r#"{"a":{"b":"decoy","b":"real"}}"#,
        r#"{"a":{"b":"decoy","b":null}}"#,
        r#"{"a":{"b":"decoy","b":["real"]}}"#,
        r#"{"a":{"b":null,"b":"real"}}"#,
        r#"{"a":{"b":"decoy"},"a":{}}"#,
        r#"{"a":{"b":"decoy"},"a":null}"#,
        r#"{"a":{"b":"decoy","\u0062":7}}"#,
        // ASP.NET Core and the package `encoding/json` of Go ignore the case of names.
        r#"{"a":{"b":"decoy","B":"real"}}"#,
        r#"{"a":{"b":"decoy"},"A":{"b":"real"}}"#,
    ] {
        assert_eq!(in_document("/a/b", document), None, "{document}");
    }
    let long = format!(r#"{{"a":{{"b":"decoy","b":"{}"}}}}"#, "x".repeat(257));
    assert_eq!(in_document("/a/b", &long), None);
    assert_eq!(in_document("/key", "{\"key\":1,\"\u{212a}EY\":2}"), None);

    for document in [
        r#"{"a":{"b":"one","c":1,"c":2},"x":1,"x":{"a":{"b":2}},"aa":{"b":3}}"#,
        r#"{"x":[{"a":1},{"a":2}],"a":{"x":{"b":1},"b":"one"}}"#,
    ] {
        assert_eq!(in_document("/a/b", document).as_deref(), Some("one"), "{document}");
    }
    assert_eq!(in_document("/0/a", r#"[{"a":1},{"a":2}]"#).as_deref(), Some("1"));
}

/// A regression test: Python accepts `NaN` and reads on, and other services accept comments.
#[test]
fn a_document_that_is_not_read_to_its_end_has_no_value() {
    for document in [
        r#"{"a":"decoy","x":NaN,"a":"real"}"#,
        r#"{"a":"decoy",'a':"real"}"#,
        r#"{"a":"decoy",a:"real"}"#,
        r#"{"a":"decoy","x":[/*"*/],"a":"real","y":[/*"*/]}"#,
        r#"{"a":"decoy","x":['"'],"a":"real","y":['"']}"#,
        r#"{"a":"decoy","x":1/*}*/,"a":"real"}"#,
        "{\"a\":\"decoy\",\"x\":1//}\n,\"a\":\"real\"}",
        "{\"a\":\"decoy\",\"x\":1//,\"y\":{\n,\"a\":\"real\"}",
        r#"{"a":"decoy""#,
        r#"{"a":"decoy"]"#,
        r#"{"a":"decoy"} {"a":"real"}"#,
        r#"{"a":"decoy"}x"#,
        // The package `json` of Ruby also accepts `\u` without four hexadecimal digits.
        r#"{"a":"decoy","x":"\u123\",",":[":"z","a":"real","k":["\""]}"#,
    ] {
        assert_eq!(in_document("/a", document), None, "{document}");
    }
    let answer = r#"{"x":[NaN,-Infinity,1.5e+3,true],"a":"one"} "#;
    assert_eq!(in_document("/a", answer).as_deref(), Some("one"));
}

/// A regression test: each spelling of a number was another subject.
#[test]
fn a_number_is_one_value_however_it_is_written() {
    for number in ["42", "42.0", "4.2e1", "\"42\""] {
        let document = format!("{{\"a\":{number}}}");
        assert_eq!(in_document("/a", &document).as_deref(), Some("42"), "{number}");
    }
    for number in ["42.5", "042", "42x", "1e999999999"] {
        assert_eq!(in_document("/a", &format!("{{\"a\":{number}}}")), None, "{number}");
    }
}

#[derive(Clone, Debug)]
enum Json {
    Word(&'static str),
    Number(u32),
    Text(String),
    Array(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

fn json() -> impl Strategy<Value = Json> {
    let name = || "[a-c/~\"\\\\é😀 ]{0,3}";
    let leaf = prop_oneof![
        prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(Json::Word),
        any::<u32>().prop_map(Json::Number),
        name().prop_map(Json::Text),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::btree_map(name(), inner, 0..5).prop_map(Json::Object),
        ]
    })
}

fn write_text(text: &str, json: &mut String) {
    json.push('"');
    for (index, letter) in text.chars().enumerate() {
        match letter {
            '"' | '\\' => write!(json, "\\{letter}").unwrap(),
            letter if index % 2 == 0 => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(json, "\\u{unit:04X}").unwrap();
                }
            }
            letter => json.push(letter),
        }
    }
    json.push('"');
}

fn write_json(value: &Json, space: &str, json: &mut String) {
    match value {
        Json::Word(word) => json.push_str(word),
        Json::Number(number) => write!(json, "{number}").unwrap(),
        Json::Text(text) => write_text(text, json),
        Json::Array(items) => {
            json.push('[');
            for (index, item) in items.iter().enumerate() {
                json.push_str(if index == 0 { space } else { "," });
                write_json(item, space, json);
                json.push_str(space);
            }
            json.push(']');
        }
        Json::Object(members) => {
            json.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                json.push_str(if index == 0 { space } else { "," });
                write_text(name, json);
                write!(json, "{space}:{space}").unwrap();
                write_json(member, space, json);
            }
            json.push_str(space);
            json.push('}');
        }
    }
}

/// Appends every number and string in `value` to `found`, each with its pointer.
fn leaves(value: &Json, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Json::Word(_) => {}
        Json::Number(number) => found.push((at.to_owned(), number.to_string())),
        Json::Text(text) => found.push((at.to_owned(), text.clone())),
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{at}/{index}"), found);
            }
        }
        Json::Object(members) => {
            for (name, member) in members {
                let step = name.replace('~', "~0").replace('/', "~1");
                leaves(member, &format!("{at}/{step}"), found);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_value_is_found_in_any_document_however_it_comes(
        value in json(),
        space in prop_oneof![Just(""), Just(" \n\t")],
        at_once in 1_usize..9,
    ) {
        let mut document = String::new();
        write_json(&value, space, &mut document);
        let mut expected = Vec::new();
        leaves(&value, "", &mut expected);
        for (at, text) in expected.iter().filter(|(at, _)| !at.is_empty()) {
            let pieces = document.as_bytes().chunks(at_once);
            prop_assert_eq!(&found(at, pieces), std::slice::from_ref(text), "{} in {}", at, document);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        value_at(&bytes, &pointer("/a/0"));
        let mut document = b"{\"a\":[".to_vec();
        document.extend(&bytes);
        value_at(&document, &pointer("/a/0"));
    }
}

fn headers(media_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))])
}

fn tokens() -> Arc<Meter> {
    Arc::new(Meter::Json { pointer: pointer("/usage/total_tokens") })
}

/// Returns the cost that a response with `headers` has reported after the part `body` of its body.
fn metered(headers: &HeaderMap, body: &str) -> Option<u64> {
    let meter = tokens();
    let mut watch = Watch::new([&meter].into_iter());
    watch.answered(headers);
    body.as_bytes().chunks(7).for_each(|piece| watch.observe(piece));
    watch.cost(&meter, Millis::ZERO).map(Cost::get)
}

const STREAM: &str = "data: {\"usage\":null}\r\n\r\n: still here\n\ndata: {\"usage\":\ndata: {\"total_tokens\":5}}\n\n\
                      data: {\"usage\":{\"total_tokens\":9}}\n\ndata: {\"usage\":{\"total_tokens\":null}}\n\ndata: [DONE]\n\n";

#[test]
fn a_stream_reports_the_last_value_that_came() {
    let headers = headers("text/event-stream; charset=utf-8");
    assert_eq!(metered(&headers, STREAM), Some(9));
    assert_eq!(metered(&headers, &STREAM[..STREAM.find('9').unwrap()]), Some(5));
    assert_eq!(metered(&headers, ": nothing\n\n"), None);
}

#[test]
fn only_what_can_be_read_is_read() {
    let body = "{\"usage\":{\"total_tokens\":9}}";
    for media_type in ["application/json", "Application/JSON; charset=utf-8", "application/x+json"]
    {
        assert_eq!(metered(&headers(media_type), body), Some(9), "{media_type}");
    }
    for media_type in ["text/plain", "", "application/jsonx", "json"] {
        assert_eq!(metered(&headers(media_type), body), None, "{media_type}");
    }
    let mut headers = headers("application/json");
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    assert_eq!(metered(&headers, body), None);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
    assert_eq!(metered(&headers, body), Some(9));
}
