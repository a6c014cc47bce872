//! Properties of the parsers: no input causes a panic, and written entries are read back.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

/// The fields of a line before a server writes them.
#[derive(Clone, Debug)]
struct Request {
    time: u64,
    address: IpAddr,
    user: Option<String>,
    target: Vec<u8>,
    status: u16,
    bytes: u64,
    referer: Option<Vec<u8>>,
    agent: Option<Vec<u8>>,
}

prop_compose! {
    fn requests()(
        // The times are whole seconds, for a format without fractions. They are below the number
        // from which on a number since the epoch counts as milliseconds.
        seconds in 0u64..100_000_000_000,
        address in any::<IpAddr>(),
        user in option::of("[a-zA-Z0-9@.]{1,12}"),
        // The path has no spaces, because a request line would end there.
        path in vec(any::<u8>().prop_filter("no space", |byte| !byte.is_ascii_whitespace()), 0..40),
        status in 100u16..=599,
        bytes in any::<u64>(),
        referer in option::of(vec(any::<u8>(), 2..60)),
        agent in option::of(vec(any::<u8>(), 2..60)),
    ) -> Request {
        let target = [b"/".as_slice(), &path].concat();
        Request { time: seconds * 1000, address, user, target, status, bytes, referer, agent }
    }
}

/// Returns a text with the escapes that Apache writes in quotes.
fn escaped(text: Option<&[u8]>) -> String {
    let Some(text) = text else { return "-".into() };
    let escape = |byte: &u8| match byte {
        b'"' => "\\\"".into(),
        b'\\' => "\\\\".into(),
        b'\n' => "\\n".into(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    };
    text.iter().map(escape).collect()
}

fn combined(request: &Request) -> String {
    format!(
        "{} - {} [{}] \"GET {} HTTP/1.1\" {} {} \"{}\" \"{}\"",
        request.address,
        request.user.as_deref().unwrap_or("-"),
        clf_time(request.time),
        escaped(Some(&request.target)),
        request.status,
        request.bytes,
        escaped(request.referer.as_deref()),
        escaped(request.agent.as_deref()),
    )
}

fn json(request: &Request) -> String {
    let text = |text: Option<&[u8]>| match text {
        Some(text) => {
            let escape = |byte: &u8| match byte {
                b'"' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            };
            format!("\"{}\"", text.iter().map(escape).collect::<String>())
        }
        None => "null".into(),
    };
    format!(
        r#"{{"msec": {}.{:03}, "remote_addr":"{}","remote_user":{},"request_method":"GET","uri":{},"status":{},"size":{},"referer":{},"user_agent":{}}}"#,
        request.time / 1000,
        request.time % 1000,
        request.address,
        text(request.user.as_deref().map(str::as_bytes)),
        text(Some(&request.target)),
        request.status,
        request.bytes,
        text(request.referer.as_deref()),
        text(request.agent.as_deref()),
    )
}

/// Computes a civil date by counting years and months: slow, and independent of the tested code.
fn clf_time(time: u64) -> String {
    let (mut day, second) = (time / 86_400_000, time / 1000 % 86_400);
    let leap = |year: u64| {
        [4, 100, 400].iter().filter(|step| year.is_multiple_of(**step)).count() % 2 == 1
    };
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let names =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{:02}/{}/{year}:{hour:02}:{minute:02}:{second:02} +0000", day + 1, names[month])
}

fn check(request: &Request, line: &str) -> Result<(), TestCaseError> {
    let entry = parse(line.as_bytes(), None)
        .map_err(|why| TestCaseError::fail(format!("{line}: {why}")))?;
    prop_assert_eq!(entry.time, request.time);
    prop_assert_eq!(entry.address(), Some(request.address));
    prop_assert_eq!(entry.user(), request.user.as_deref().map(str::as_bytes));
    prop_assert_eq!(entry.method(), Some(&b"GET"[..]));
    prop_assert_eq!(entry.target(), Some(&*request.target));
    prop_assert_eq!((entry.status, entry.bytes), (request.status, Some(request.bytes)));
    prop_assert_eq!(entry.referer(), request.referer.as_deref());
    prop_assert_eq!(entry.user_agent(), request.agent.as_deref());
    Ok(())
}

proptest! {
    #[test]
    fn what_a_server_writes_is_read_back(request in requests()) {
        check(&request, &combined(&request))?;
        check(&request, &json(&request))?;
    }

    #[test]
    fn a_line_cut_or_changed_anywhere_never_panics(
        request in requests(), cut in any::<proptest::sample::Index>(), byte in any::<u8>(),
    ) {
        for line in [combined(&request), json(&request)] {
            let mut line = line.into_bytes();
            let at = cut.index(line.len());
            for format in [None, Some(Format::Common), Some(Format::Combined), Some(Format::Json)] {
                let _ = parse(&line[..at], format);
            }
            line[at] = byte;
            let _ = parse(&line, None);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(line in vec(any::<u8>(), 0..300)) {
        for format in [None, Some(Format::Common), Some(Format::Combined), Some(Format::Json)] {
            let _ = parse(&line, format);
        }
    }

    #[test]
    fn text_that_looks_like_a_log_never_panics(line in r#"[\[\]{}"\\: ,0-9a-z/+\-x.]{0,200}"#) {
        for format in [None, Some(Format::Common), Some(Format::Json)] {
            let _ = parse(line.as_bytes(), format);
        }
    }
}
