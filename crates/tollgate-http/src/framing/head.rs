use http::Uri;

use super::{
    Violation,
    host::{authority_of, is_host, same_host},
    section::{SectionLimits, field, is_token, lines},
};

/// The information in a valid request head that determines how the bytes after the head are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The way in which the end of the request body is found.
    pub(crate) body: BodyFraming,
    /// Whether the bytes after the request can belong to another protocol than HTTP.
    pub(crate) after: After,
}

/// The way in which the end of a request body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// The body has this length in bytes. 0 means no body.
    Length(u64),
    /// The body is sent in chunks, and ends with its last chunk.
    Chunked,
}

/// Whether the bytes after a message can belong to another protocol than HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The bytes after the message are the next request.
    Message,
    /// The bytes after the message belong to the next request or to another protocol, depending on
    /// the response.
    UpgradeAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

/// The longest method that is accepted, in bytes. The longest registered method,
/// `UPDATEREDIRECTREF`, has 17 bytes.
const MAX_METHOD_BYTES: usize = 32;
/// The most digits of a `Content-Length`. Every number with this many digits fits in 64 bits.
const MAX_LENGTH_DIGITS: usize = 19;

/// The longest path in bytes that takes the fast check. This length is far below the limit of URI
/// parsers.
const MAX_PLAIN_PATH_BYTES: usize = 8 * 1024;

/// Parses a complete head, from its request line to its empty line.
pub(crate) fn parse_head(head: &[u8], limits: &SectionLimits) -> Result<Head, Violation> {
    let mut lines = lines(head);
    let request_line = RequestLine::parse(lines.next().unwrap_or_default(), limits)?;
    let mut fields = FramingFields::default();
    for line in lines {
        let (name, value) = field(line)?;
        fields.note(name, value)?;
    }
    fields.check_host(&request_line)?;
    let body = fields.body(request_line.version)?;
    let after = match (fields.upgrade, request_line.version) {
        (Some(()), Version::Http11) => After::UpgradeAnswer,
        _ => After::Message,
    };
    Ok(Head { body, after })
}

struct RequestLine<'a> {
    target: &'a [u8],
    version: Version,
}

impl<'a> RequestLine<'a> {
    fn parse(line: &'a [u8], limits: &SectionLimits) -> Result<Self, Violation> {
        let first = memchr::memchr(b' ', line).ok_or(Violation::RequestLine)?;
        let last = memchr::memrchr(b' ', line).ok_or(Violation::RequestLine)?;
        if first == last {
            return Err(Violation::RequestLine);
        }
        let (method, target, version) = (&line[..first], &line[first + 1..last], &line[last + 1..]);
        if !is_token(method) || method.len() > MAX_METHOD_BYTES {
            return Err(Violation::Method);
        }
        let version = version_of(version)?;
        if method == b"CONNECT" {
            return Err(Violation::Connect);
        }
        if target.len() > limits.target_bytes {
            return Err(Violation::TargetTooLong);
        }
        check_target(method, target)?;
        Ok(Self { target, version })
    }
}

fn version_of(version: &[u8]) -> Result<Version, Violation> {
    match version {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(Violation::Version)
        }
        _ => Err(Violation::RequestLine),
    }
}

/// Checks the request target. A fragment is refused because URI parsers drop it silently, and bytes
/// beyond ASCII are refused because servers interpret them differently. Everything that the next
/// parser would refuse is refused here, where the client gets an explanation.
fn check_target(method: &[u8], target: &[u8]) -> Result<(), Violation> {
    if is_plain_path(target) {
        return Ok(());
    }
    let visible = target.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#');
    let form = match target {
        [b'/', ..] => true,
        b"*" => method == b"OPTIONS",
        _ => authority_of(target).is_some_and(is_host),
    };
    if visible && form && Uri::try_from(target).is_ok() { Ok(()) } else { Err(Violation::Target) }
}

/// Returns whether `target` is a path with an optional query that consists only of bytes which
/// every URI parser accepts. Most targets have this form, and need not be parsed twice.
fn is_plain_path(target: &[u8]) -> bool {
    target.first() == Some(&b'/')
        && target.len() <= MAX_PLAIN_PATH_BYTES
        && target.iter().all(|byte| {
            matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'-'..=b'9' | b'_' | b'~' | b'?' | b'&' | b'=' | b'%')
        })
}

/// The fields of a head that determine the framing and the routing of a request.
#[derive(Default)]
struct FramingFields<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: Option<()>,
    upgrade: Option<()>,
}

impl<'a> FramingFields<'a> {
    fn note(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Violation> {
        if name.eq_ignore_ascii_case(b"host") {
            let value = value.trim_ascii();
            if !is_host(value) {
                return Err(Violation::HostMalformed);
            }
            if self.host.replace(value).is_some() {
                return Err(Violation::HostRepeated);
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.replace(length_of(value)?).is_some() {
                return Err(Violation::ContentLengthRepeated);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // Only the one usual space is allowed, because parsers treat other white space
            // differently.
            let coding = value.strip_prefix(b" ").unwrap_or(value);
            let repeated = self.chunked.replace(()).is_some();
            if repeated || !coding.eq_ignore_ascii_case(b"chunked") {
                return Err(Violation::TransferEncoding);
            }
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.upgrade = Some(());
        }
        Ok(())
    }

    fn check_host(&self, request_line: &RequestLine<'_>) -> Result<(), Violation> {
        match (self.host, authority_of(request_line.target)) {
            (None, _) if request_line.version == Version::Http11 => Err(Violation::HostMissing),
            (Some(host), Some(authority)) if !same_host(host, authority) => {
                Err(Violation::HostMismatch)
            }
            _ => Ok(()),
        }
    }

    fn body(&self, version: Version) -> Result<BodyFraming, Violation> {
        match (self.chunked, self.length) {
            (Some(()), _) if version == Version::Http10 => {
                Err(Violation::TransferEncodingInOldVersion)
            }
            (Some(()), Some(_)) => Err(Violation::LengthAndTransferEncoding),
            (Some(()), None) => Ok(BodyFraming::Chunked),
            (None, length) => Ok(BodyFraming::Length(length.unwrap_or(0))),
        }
    }
}

fn length_of(value: &[u8]) -> Result<u64, Violation> {
    let digits = value.trim_ascii();
    if digits.is_empty()
        || digits.len() > MAX_LENGTH_DIGITS
        || !digits.iter().all(u8::is_ascii_digit)
    {
        return Err(Violation::ContentLength);
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
