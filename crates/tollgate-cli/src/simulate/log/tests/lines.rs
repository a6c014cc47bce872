//! Single lines: each format, and hostile input of clients.

use super::*;

fn entry(line: &str) -> Entry {
    parse(line.as_bytes(), None).unwrap_or_else(|why| panic!("{line}: {why}"))
}

const TIME: u64 = 1_431_857_103_000;

#[test]
fn a_combined_line() {
    let entry = entry(
        r#"83.149.9.216 - ann [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 203023 "http://x/" "Agent (\"q\")""#,
    );
    assert_eq!((entry.time, entry.status, entry.bytes), (TIME, 200, Some(203_023)));
    assert_eq!(entry.address(), Some("83.149.9.216".parse().unwrap()));
    assert_eq!(entry.user(), Some(&b"ann"[..]));
    assert_eq!(entry.method(), Some(&b"GET"[..]));
    assert_eq!(entry.target(), Some(&b"/a?b=c"[..]));
    assert_eq!(entry.referer(), Some(&b"http://x/"[..]));
    assert_eq!(entry.user_agent(), Some(&br#"Agent ("q")"#[..]));
    assert_eq!((entry.host(), entry.duration), (None, None));
}

#[test]
fn a_common_line_and_absent_fields() {
    let entry = entry(r#"::1 - - [17/May/2015:12:05:03 +0200] "GET /" 304 -"#);
    assert_eq!((entry.time, entry.status, entry.bytes), (TIME, 304, Some(0)));
    assert_eq!(entry.address(), Some("::1".parse().unwrap()));
    assert_eq!((entry.user(), entry.referer(), entry.user_agent()), (None, None, None));
}

#[test]
fn trailing_fields_are_tolerated_and_the_common_format_reads_none() {
    let line = r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "r" "a" "9.9.9.9" rt=0.2 "more"#;
    assert_eq!(entry(line).user_agent(), Some(&b"a"[..]));
    let common = parse(line.as_bytes(), Some(Format::Common)).unwrap();
    assert_eq!((common.status, common.user_agent()), (200, None));
}

#[test]
fn who_stands_before_the_time() {
    for (head, client, host, user) in [
        ("crawl-66-249.example.com - -", "crawl-66-249.example.com", None, None),
        ("1.2.3.4 - John Q. Doe", "1.2.3.4", None, Some("John Q. Doe")),
        ("1.2.3.4 - \"\"", "1.2.3.4", None, None),
        ("1.2.3.4 - [admin] x", "1.2.3.4", None, Some("[admin] x")),
        ("example.com:443 1.2.3.4 - -", "1.2.3.4", Some("example.com:443"), None),
        ("example.com 2001:db8::1 - ann", "2001:db8::1", Some("example.com"), Some("ann")),
        (
            "example.com:80 client.example.net - ann",
            "client.example.net",
            Some("example.com:80"),
            Some("ann"),
        ),
        ("192.0.2.1 1.2.3.4 - -", "1.2.3.4", Some("192.0.2.1"), None),
        ("2001:db8::1 - - -", "2001:db8::1", None, Some("- -")),
    ] {
        let entry =
            entry(&format!(r#"{head} [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#));
        assert_eq!(entry.client(), Some(client.as_bytes()), "{head}");
        assert_eq!(entry.host(), host.map(str::as_bytes), "{head}");
        assert_eq!(entry.user(), user.map(str::as_bytes), "{head}");
    }
}

#[test]
fn requests_that_are_none_are_entries_without_method_and_target() {
    for request in [r"-", r"", r"\x16\x03\x01\x00\xa5", r"quit", r"\n", "\u{0}\u{1}"] {
        let entry = entry(&format!(
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "{request}" 400 0 "-" "-""#
        ));
        assert_eq!((entry.method(), entry.target(), entry.status), (None, None, 400), "{request}");
    }
}

#[test]
fn a_line_cut_short_in_its_last_field_is_an_entry() {
    let line = r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0 (compa"#;
    assert_eq!(entry(line).user_agent(), Some(&b"Mozilla/5.0 (compa"[..]));
}

#[test]
fn an_iso_time_in_brackets() {
    let line = r#"1.2.3.4 - - [2015-05-17T12:05:03+02:00] "GET / HTTP/1.1" - 5"#;
    assert_eq!((entry(line).time, entry(line).status), (TIME, 0));
}

#[test]
fn malformed_lines_say_why() {
    use Malformed::*;
    for (line, why) in [
        ("", NoTime),
        ("not a log", NoTime),
        ("\u{0}\u{0}\u{0}", NoTime),
        (r#"1.2.3.4 - - [today] "GET / HTTP/1.1" 200 5"#, BadTime),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000"#, NoTime),
        (r#"[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#, NoClient),
        (r#"1.2.3.4 [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#, NoClient),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000]"#, NoRequest),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] GET / HTTP/1.1 200 5"#, NoRequest),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HT"#, NoRequest),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 2000 5"#, BadStatus),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1""#, BadStatus),
        (r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5k"#, BadBytes),
        (
            r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 99999999999999999999"#,
            BadBytes,
        ),
    ] {
        assert_eq!(parse(line.as_bytes(), None), Err(why), "{line}");
    }
    assert!(matches!(parse(b"{]", None), Err(Json { at: 1, .. })));
}

#[test]
fn invalid_utf8_is_kept_as_it_is() {
    let line = b"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /\xff\xfe HTTP/1.1\" 200 5 \"-\" \"\xc3\x28\"";
    let entry = parse(line, None).unwrap();
    assert_eq!(entry.target(), Some(&b"/\xff\xfe"[..]));
    assert_eq!(entry.user_agent(), Some(&b"\xc3\x28"[..]));
}

#[test]
fn the_first_line_that_can_be_read_settles_the_format() {
    let mut parser = Parser::new(None, Arc::new(FieldMap::default()));
    let json = br#"{"ts":1431857103,"uri":"/"}"#;
    let combined = br#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#;
    assert!(parser.parse(b"{").is_err());
    assert!(parser.parse(combined).is_ok());
    assert_eq!(parser.parse(json), Err(Malformed::NoTime));
}
