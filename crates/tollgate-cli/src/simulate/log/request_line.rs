//! Request lines, such as `GET /path?query HTTP/1.1`, and malformed request lines.

/// Returns method and target of a request line, or `None` if the text is not a request line (`-`,
/// the first bytes of a TLS hello).
///
/// The version may be missing (HTTP/0.9), and a target may contain spaces, because some clients
/// send such targets.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let method = &line[..space];
    if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
        return None;
    }
    let target = without_version(&line[space + 1..]).trim_ascii();
    (!target.is_empty()).then_some((method, target))
}

fn without_version(rest: &[u8]) -> &[u8] {
    match memchr::memrchr(b' ', rest) {
        Some(space) if rest[space + 1..].starts_with(b"HTTP/") => &rest[..space],
        _ => rest,
    }
}

/// Returns whether RFC 9110 allows the byte in a token, such as a method.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_lines_of_every_age() {
        for (line, method, target) in [
            ("GET / HTTP/1.1", "GET", "/"),
            ("GET /a?b=c HTTP/2.0", "GET", "/a?b=c"),
            ("GET /old", "GET", "/old"),
            ("GET /a b c HTTP/1.0", "GET", "/a b c"),
            ("OPTIONS * HTTP/1.1", "OPTIONS", "*"),
            ("CONNECT example.com:443 HTTP/1.1", "CONNECT", "example.com:443"),
            ("GET http://example.com/ HTTP/1.1", "GET", "http://example.com/"),
        ] {
            let expected = Some((method.as_bytes(), target.as_bytes()));
            assert_eq!(split(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_request_line() {
        for line in
            ["", "-", "GET", "GET ", " / HTTP/1.1", "\x16\x03\x01 a", "GET\t/ HTTP/1.1", "\u{e9} /"]
        {
            assert_eq!(split(line.as_bytes()), None, "{line:?}");
        }
    }
}
