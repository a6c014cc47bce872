//! How the dimensions of a subject are read from a request.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use super::address::{Forwarding, mask};
use super::host::host_name;
use super::matching::Matched;
use super::path::PathPattern;
use super::pointer::JsonPointer;
use crate::attributes::{Headers, RequestAttributes};
use crate::key::{KeyedHash, Subject, Value};

/// One dimension of a subject: its name and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name in the policy.
    pub name: Box<str>,
    /// Where its value comes from.
    pub source: SubjectSource,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectSource {
    /// A credential in a header, such as `authorization` or `x-api-key`: hashed before it is used.
    /// The name of a scheme before it (`Bearer`, `token`) does not count.
    Credential {
        /// The header's name in lower case.
        header: Box<str>,
    },
    /// A header's value as it is.
    Header {
        /// The header's name in lower case.
        header: Box<str>,
    },
    /// A cookie: a credential, hashed before it is used.
    Cookie {
        /// The cookie's name.
        cookie: Box<str>,
    },
    /// The client's address, or the network that it is in.
    ClientAddress {
        /// Leading bits that count of an IPv4 address.
        ipv4_prefix: u8,
        /// Leading bits that count of an IPv6 address.
        ipv6_prefix: u8,
    },
    /// A parameter of the rule's path pattern.
    PathParameter {
        /// Its name in the pattern.
        parameter: Box<str>,
    },
    /// The text or number there in the request's body, which is JSON, if the listener has read it.
    Json {
        /// Where it stands.
        pointer: JsonPointer,
    },
    /// The host that was asked for, in lower case and without a port.
    Host,
    /// The path pattern of the rule that matched, or the rule's name if it has none.
    Route,
    /// The method.
    Method,
    /// The same for everybody.
    Constant {
        /// The value.
        value: Box<str>,
    },
}

/// A value read from a request.
enum Read<'a> {
    Borrowed(&'a [u8]),
    Owned(String),
}

impl SubjectSource {
    /// Whether the request has a value.
    pub(super) fn is_present(
        &self,
        forwarding: &Forwarding,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> bool {
        self.read(forwarding, attributes, matched).is_some()
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self, Self::Credential { .. } | Self::Cookie { .. })
    }

    fn read<'a>(
        &'a self,
        forwarding: &Forwarding,
        attributes: &RequestAttributes<'a>,
        matched: &Matched<'a>,
    ) -> Option<Read<'a>> {
        match self {
            Self::Credential { header } => {
                let value = credential(attributes.headers.value(header, 0)?);
                (!value.is_empty()).then_some(Read::Borrowed(value))
            }
            Self::Header { header } => {
                let value = attributes.headers.value(header, 0)?.trim_ascii();
                (!value.is_empty()).then_some(Read::Borrowed(value))
            }
            Self::Cookie { cookie } => self::cookie(attributes.headers, cookie).map(Read::Borrowed),
            Self::ClientAddress { ipv4_prefix, ipv6_prefix } => {
                let address = forwarding.client(attributes)?;
                Some(Read::Owned(network_name(address, *ipv4_prefix, *ipv6_prefix)))
            }
            Self::PathParameter { parameter } => {
                let pattern = matched.pattern?;
                pattern.parameter(parameter, matched.path).map(Read::Borrowed)
            }
            Self::Json { pointer } => {
                let text = attributes.headers.in_body(pointer)?;
                (!text.is_empty()).then_some(Read::Owned(text))
            }
            Self::Host => Some(Read::Owned(host_name(attributes.host?))),
            Self::Route => {
                let pattern = matched.pattern.map(PathPattern::as_str);
                Some(Read::Borrowed(pattern.unwrap_or(matched.rule).as_bytes()))
            }
            Self::Method => Some(Read::Borrowed(attributes.method.as_bytes())),
            Self::Constant { value } => Some(Read::Borrowed(value.as_bytes())),
        }
    }
}

/// The subject of `dimensions` in this request.
pub(super) fn subject<'d>(
    dimensions: impl Iterator<Item = &'d Dimension> + Clone,
    forwarding: &Forwarding,
    attributes: &RequestAttributes<'_>,
    matched: &Matched<'_>,
    key: &dyn KeyedHash,
) -> Subject {
    let values: Vec<_> = dimensions
        .clone()
        .map(|dimension| dimension.source.read(forwarding, attributes, matched))
        .collect();
    let pairs = dimensions.zip(&values).map(|(dimension, read)| {
        let bytes = match read {
            None => return (&*dimension.name, Value::Absent),
            Some(Read::Borrowed(bytes)) => bytes,
            Some(Read::Owned(text)) => text.as_bytes(),
        };
        let secret = dimension.source.is_secret();
        (&*dimension.name, if secret { Value::Secret(bytes) } else { Value::Clear(bytes) })
    });
    Subject::new(pairs, key)
}

/// A credential without the name of its scheme: `Bearer x`, `token x` and `x` are one.
pub(super) fn credential(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    for scheme in [&b"bearer "[..], b"token "] {
        if value.len() > scheme.len() && value[..scheme.len()].eq_ignore_ascii_case(scheme) {
            return value[scheme.len()..].trim_ascii();
        }
    }
    value
}

/// The first cookie of that name in any `cookie` field.
fn cookie<'a>(headers: &'a dyn Headers, name: &str) -> Option<&'a [u8]> {
    let fields = (0..).map_while(|index| headers.value("cookie", index));
    let mut pairs = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    pairs.find_map(|pair| {
        let value = pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        (!value.is_empty()).then_some(value)
    })
}

/// `192.0.2.1`, or `2001:db8::/64` where not the whole address counts.
pub(super) fn network_name(address: IpAddr, ipv4_prefix: u8, ipv6_prefix: u8) -> String {
    let (prefix, bits) = match address {
        IpAddr::V4(_) => (ipv4_prefix, 32),
        IpAddr::V6(_) => (ipv6_prefix, 128),
    };
    let network = mask(address, prefix);
    if prefix >= bits { network.to_string() } else { alloc::format!("{network}/{prefix}") }
}
