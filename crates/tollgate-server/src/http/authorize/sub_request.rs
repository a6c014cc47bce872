//! The request that a proxy describes in the header fields of its sub-request.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, Method};
use tollgate::model::{Headers, RequestAttributes};

const FORWARDED_FOR: &str = "x-forwarded-for";
const FORWARDED_HOST: &str = "x-forwarded-host";

/// The longest method that is accepted, in bytes.
const LONGEST_METHOD: usize = 32;
const LONGEST_HOST: usize = 255;

/// A request that another proxy has received and not forwarded yet.
#[derive(Debug)]
pub(super) struct SubRequest<'a> {
    target: Target<'a>,
    host: Option<&'a str>,
    client: IpAddr,
    fields: ClientHeaders<'a>,
}

impl<'a> SubRequest<'a> {
    /// Reads the request from `fields`. `fields` can also contain header fields that the proxy's
    /// client sent.
    ///
    /// | part | header fields |
    /// | --- | --- |
    /// | method and URI | `x-forwarded-method` and `-uri`, or `x-original-method` and `-uri` |
    /// | client | the last address of `x-forwarded-for` |
    /// | host | `x-forwarded-host`, if present |
    ///
    /// A proxy that sets one pair of fields may pass on the other pair from its client. Therefore
    /// neither pair takes precedence. Two pairs that differ are refused, and so are an incomplete
    /// pair and a repeated field.
    ///
    /// # Errors
    /// [`SubRequestError`] with the field that is invalid, and the expected value.
    pub(super) fn read(fields: &'a HeaderMap) -> Result<Self, SubRequestError> {
        let forwarded = FORWARDED.read(fields)?;
        let original = ORIGINAL.read(fields)?;
        let target = match (forwarded, original) {
            (Some(target), None) | (None, Some(target)) => target,
            (Some(target), Some(other)) if target == other => target,
            (Some(_), Some(_)) => return Err(SubRequestError::Contradiction),
            (None, None) => return Err(SubRequestError::NoTarget),
        };
        let host = single(fields, FORWARDED_HOST)?.map(host).transpose()?;
        let (client, fields) = ClientHeaders::without_client(fields)?;
        Ok(Self { target, host, client, fields })
    }

    /// Returns the request's attributes for the policy. The peer in these attributes is the proxy's
    /// client, and the forwarding header fields are those that this client sent.
    pub(super) fn facts(&self) -> RequestAttributes<'_> {
        let Target { method, path, query } = self.target;
        RequestAttributes {
            method,
            path,
            query,
            host: self.host,
            peer: Some(self.client),
            headers: &self.fields,
        }
    }
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target<'a> {
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

/// The names of two header fields that together describe the target of a request.
struct Pair {
    method: &'static str,
    uri: &'static str,
}

const FORWARDED: Pair = Pair { method: "x-forwarded-method", uri: "x-forwarded-uri" };
const ORIGINAL: Pair = Pair { method: "x-original-method", uri: "x-original-uri" };

impl Pair {
    fn read<'a>(&self, fields: &'a HeaderMap) -> Result<Option<Target<'a>>, SubRequestError> {
        match (single(fields, self.method)?, single(fields, self.uri)?) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(SubRequestError::Missing(self.method)),
            (Some(_), None) => Err(SubRequestError::Missing(self.uri)),
            (Some(method), Some(uri)) => {
                let (method, (path, query)) = (self.method(method)?, self.path_and_query(uri)?);
                Ok(Some(Target { method, path, query }))
            }
        }
    }

    fn method<'a>(&self, value: &'a HeaderValue) -> Result<&'a str, SubRequestError> {
        let is_method = |text: &&str| {
            text.len() <= LONGEST_METHOD && Method::from_bytes(text.as_bytes()).is_ok()
        };
        let expected = "a method such as GET";
        value.to_str().ok().filter(is_method).ok_or(SubRequestError::Invalid(self.method, expected))
    }

    /// Returns the path and the query of `/path?query`, without decoding them.
    fn path_and_query<'a>(
        &self,
        value: &'a HeaderValue,
    ) -> Result<(&'a str, Option<&'a str>), SubRequestError> {
        let is_target = |text: &&str| (text.starts_with('/') || *text == "*") && is_plain(text);
        let expected = "a path that begins with \"/\", with or without a query";
        let target = std::str::from_utf8(value.as_bytes()).ok().filter(is_target);
        let target = target.ok_or(SubRequestError::Invalid(self.uri, expected))?;
        let target = target.split('#').next().unwrap_or_default();
        let split = target.split_once('?').map(|(path, query)| (path, Some(query)));
        Ok(split.unwrap_or((target, None)))
    }
}

/// Returns the value of a field, if it is present exactly once.
fn single<'a>(
    fields: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a HeaderValue>, SubRequestError> {
    let mut lines = fields.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (line, None) => Ok(line),
        _ => Err(SubRequestError::Duplicate(name)),
    }
}

fn host(value: &HeaderValue) -> Result<&str, SubRequestError> {
    let is_host = |text: &&str| {
        (1..=LONGEST_HOST).contains(&text.len()) && is_plain(text) && !text.contains(',')
    };
    let expected = "one host, with or without a port";
    value.to_str().ok().filter(is_host).ok_or(SubRequestError::Invalid(FORWARDED_HOST, expected))
}

/// Returns whether `text` contains neither whitespace nor control characters.
fn is_plain(text: &str) -> bool {
    !text.chars().any(|character| character.is_whitespace() || character.is_control())
}

/// The header fields that the client sent, without the address that the proxy appended to them.
#[derive(Debug)]
struct ClientHeaders<'a> {
    fields: &'a HeaderMap,
    last_line: usize,
    before_client: &'a [u8],
}

impl<'a> ClientHeaders<'a> {
    fn without_client(fields: &'a HeaderMap) -> Result<(IpAddr, Self), SubRequestError> {
        let mut lines = fields.get_all(FORWARDED_FOR).iter();
        let Some(line) = lines.next_back() else {
            return Err(SubRequestError::Missing(FORWARDED_FOR));
        };
        let line = line.as_bytes();
        let comma = line.iter().rposition(|byte| *byte == b',');
        let (before_client, last) = match comma {
            Some(comma) => (&line[..comma], &line[comma + 1..]),
            None => (&line[..0], line),
        };
        let expected = "a list that ends with the client's address";
        let client = address(last).ok_or(SubRequestError::Invalid(FORWARDED_FOR, expected))?;
        Ok((client, Self { fields, last_line: lines.count(), before_client }))
    }
}

impl Headers for ClientHeaders<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        if name == FORWARDED_FOR && index == self.last_line {
            return Some(self.before_client);
        }
        self.fields.get_all(name).iter().nth(index).map(HeaderValue::as_bytes)
    }
}

/// Parses an address with or without a port, and with or without brackets around IPv6. Returns
/// `None` if `text` is not an address.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok().map(IpAddr::V6);
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    let address = text.parse().ok().or_else(bracketed).or_else(with_port);
    address.map(|address| address.to_canonical())
}

/// The reason why a sub-request does not describe a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubRequestError {
    /// Neither pair of fields is present.
    NoTarget,
    /// The two pairs of fields describe different requests.
    Contradiction,
    /// This field is missing.
    Missing(&'static str),
    /// This field is present more than once.
    Duplicate(&'static str),
    /// This field has an invalid value. The second text describes the expected value.
    Invalid(&'static str, &'static str),
}

impl fmt::Display for SubRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTarget => f.write_str(
                "the sub-request does not describe a request: send x-forwarded-method and \
                 x-forwarded-uri, or x-original-method and x-original-uri",
            ),
            Self::Contradiction => f.write_str(
                "x-forwarded-* and x-original-* describe different requests: the proxy has to \
                 remove the pair that it does not set",
            ),
            Self::Missing(name) => write!(f, "{name} is missing: the proxy has to set it"),
            Self::Duplicate(name) => {
                write!(
                    f,
                    "{name} is present twice: the proxy has to replace the field of its client"
                )
            }
            Self::Invalid(name, expected) => write!(f, "{name} is not {expected}"),
        }
    }
}

#[cfg(test)]
mod tests;
