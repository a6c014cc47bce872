//! The dimensions of a subject, and the code that reads their values from a request.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::Ambiguity;
use super::address::{Forwarding, network_name};
use super::claim::ClaimReader;
use super::credential::{self, credential, joined_cookies};
use super::dotted_decimal::dotted_decimal;
use super::expression::{Attribute, Text};
use super::host::host_name;
use super::matching::Matched;
use super::path::PathPattern;
use super::query;
use crate::attributes::{CertificateName, Field, Headers, RequestAttributes};
use crate::json_pointer::JsonPointer;
use crate::key::{KeyedHash, Subject, Value};

/// One dimension of a subject: its name and the source of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The name in the policy.
    pub name: Box<str>,
    /// The source of the dimension's value.
    pub source: SubjectSource,
}

/// The source of a dimension's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectSource {
    /// A credential in a header, such as `authorization` or `x-api-key`, hashed before it is used.
    /// `Bearer x`, `token x` and `x` are the same credential, whatever the case of the scheme and the
    /// white space after it; in `authorization` and `proxy-authorization`, `token="x"` too. For other
    /// schemes in these two headers, the scheme in lower case is part of the credential.
    Credential {
        /// The header's name in lower case.
        header: Box<str>,
    },
    /// A header's value, unchanged.
    Header {
        /// The header's name in lower case.
        header: Box<str>,
    },
    /// A cookie: a percent-decoded credential, hashed before it is used.
    Cookie {
        /// The cookie's name.
        cookie: Box<str>,
    },
    /// A parameter of the query, decoded and without surrounding white space.
    Query {
        /// The parameter's decoded name.
        parameter: Box<str>,
        /// Whether the value is a credential, which is hashed before it is used.
        is_secret: bool,
    },
    /// The client's address, or its network.
    ClientAddress {
        /// The number of significant leading bits of an IPv4 address.
        ipv4_prefix: u8,
        /// The number of significant leading bits of an IPv6 address.
        ipv6_prefix: u8,
    },
    /// A parameter of the rule's path pattern.
    PathParameter {
        /// The parameter's name in the pattern.
        parameter: Box<str>,
    },
    /// A segment of the normalized path, selected by its number.
    PathSegment {
        /// The number of the segment. The first segment has the number 1.
        number: usize,
    },
    /// The first of several dimensions that has a value in the request. The value is `name:value`,
    /// with the name of that dimension.
    FirstOf {
        /// The dimensions in order. None of them is a [`FirstOf`](Self::FirstOf).
        dimensions: Vec<Dimension>,
    },
    /// A string or number in the JSON body of the request. The value is absent if the listener has
    /// not read the body.
    Json {
        /// The pointer to the value in the body.
        pointer: JsonPointer,
        /// What happens to a request with a body in which the value cannot be read.
        unread: UnreadBodies,
    },
    /// A name in the certificate that the client presented, which the listener has verified.
    TlsClient {
        /// The kind of the name in the certificate.
        name: CertificateName,
    },
    /// A claim of a token. The value is absent if the token is not accepted.
    Claim(ClaimSource),
    /// A text made from attributes of the request. An empty text counts as absent.
    Expression {
        /// The compiled expression. It refers to no dimensions.
        text: Text,
        /// The expression as it was written in the policy file.
        written: Box<str>,
        /// Whether the value is a credential, which is hashed before it is used.
        is_secret: bool,
    },
    /// The requested host, in lower case and without a port.
    Host,
    /// The path pattern of the rule that matched, or the name of that rule if it has no pattern.
    Route,
    /// The method, in capitals.
    Method,
    /// A value that the application provides ([`Headers::application_value`]). The value is used
    /// unchanged.
    Application {
        /// The name under which the application provides the value.
        name: Box<str>,
    },
    /// A constant: the same value for all requests.
    Constant {
        /// The value that every request has.
        value: Box<str>,
    },
}

/// A claim of a token.
#[derive(Clone, Debug)]
pub struct ClaimSource {
    /// The source of the token: a credential or a cookie.
    pub token: Box<SubjectSource>,
    /// The member names that lead to the claim, the outermost first.
    pub path: Vec<Box<str>>,
    /// The reader of the claim.
    pub reader: Arc<dyn ClaimReader>,
}

impl PartialEq for ClaimSource {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
            && self.path == other.path
            && self.reader.is_verified() == other.reader.is_verified()
            && self.reader.fingerprint() == other.reader.fingerprint()
    }
}

impl Eq for ClaimSource {}

/// What happens to a request with a body in which the value of a subject cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnreadBodies {
    /// The request is treated like a request without the subject.
    #[default]
    Pass,
    /// The request is refused.
    Refuse,
}

impl SubjectSource {
    /// Returns whether the request has a value for this source.
    pub(super) fn is_present(
        &self,
        forwarding: &Forwarding,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> bool {
        self.read(forwarding, attributes, matched).is_some()
    }

    /// Returns whether some values of the source are credentials, which are hashed before they are
    /// used.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Credential { .. } | Self::Cookie { .. } => true,
            Self::Query { is_secret, .. } | Self::Expression { is_secret, .. } => *is_secret,
            Self::FirstOf { dimensions } => dimensions.iter().any(|one| one.source.is_secret()),
            _ => false,
        }
    }

    /// Returns whether the query of a request can contain a credential. Such a query must not be
    /// logged.
    #[must_use]
    pub fn is_secret_in_query(&self) -> bool {
        match self {
            Self::Query { is_secret, .. } => *is_secret,
            Self::Expression { text, is_secret: true, .. } => {
                let mut reads_query = false;
                text.attributes(&mut |one| {
                    reads_query |= matches!(one, Attribute::Query | Attribute::Parameter(_));
                });
                reads_query
            }
            Self::FirstOf { dimensions } => {
                dimensions.iter().any(|one| one.source.is_secret_in_query())
            }
            _ => false,
        }
    }

    /// Returns whether the value is the client's address, of which all bits are significant if it
    /// is an IPv4 address.
    pub(super) const fn is_whole_address(&self) -> bool {
        matches!(self, Self::ClientAddress { ipv4_prefix: 32.., .. })
    }

    /// Returns whether the value is a field or an attribute of the request that does not depend on
    /// the matching rule.
    pub(super) const fn is_of_every_rule(&self) -> bool {
        matches!(
            self,
            Self::Credential { .. }
                | Self::Header { .. }
                | Self::Cookie { .. }
                | Self::Query { .. }
                | Self::TlsClient { .. }
                | Self::Application { .. }
        )
    }

    /// Returns the value in the request, and whether the value is secret. If the value is
    /// ambiguous, the function records the ambiguity and returns `None`.
    pub(super) fn read<'a>(
        &'a self,
        forwarding: &Forwarding,
        attributes: &RequestAttributes<'a>,
        matched: &Matched<'a>,
    ) -> ReadValue<'a> {
        let Self::FirstOf { dimensions } = self else {
            let value = self.value(forwarding, attributes, matched)?;
            return Some((value, self.is_secret()));
        };
        dimensions.iter().find_map(|Dimension { name, source }| {
            let value = source.value(forwarding, attributes, matched)?;
            let named = [name.as_bytes(), b":", &*value].concat();
            Some((Cow::Owned(named), source.is_secret()))
        })
    }

    /// Returns the value of this source in the request, or `None` if the request has none. For
    /// [`FirstOf`](Self::FirstOf), the result is the value of the first dimension that has a value,
    /// without the name of that dimension.
    pub(super) fn unnamed<'a>(
        &'a self,
        forwarding: &Forwarding,
        attributes: &RequestAttributes<'a>,
        matched: &Matched<'a>,
    ) -> Option<Cow<'a, [u8]>> {
        let Self::FirstOf { dimensions } = self else {
            return self.value(forwarding, attributes, matched);
        };
        dimensions.iter().find_map(|one| one.source.value(forwarding, attributes, matched))
    }

    /// Returns the value of this source in the request, or `None` if the request has none. The
    /// source must not be a [`FirstOf`](Self::FirstOf).
    fn value<'a>(
        &'a self,
        forwarding: &Forwarding,
        attributes: &RequestAttributes<'a>,
        matched: &Matched<'a>,
    ) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Query { parameter, .. } => {
                present(query::value(attributes.query?, parameter), matched)
            }
            Self::PathSegment { number } => {
                let segment = matched.path.segments().nth(number.checked_sub(1)?)?;
                Some(Cow::Borrowed(segment))
            }
            Self::FirstOf { .. } => None,
            Self::Credential { header } => {
                let value = match field(attributes.headers, header, matched)? {
                    Cow::Borrowed(value) => credential(header, value),
                    Cow::Owned(value) => Ok(Cow::Owned(value)),
                };
                present(value.map(Some), matched)
            }
            Self::Header { header } => {
                let value = match field(attributes.headers, header, matched)? {
                    Cow::Borrowed(value) => Cow::Borrowed(value.trim_ascii()),
                    Cow::Owned(value) => Cow::Owned(value),
                };
                present(Ok(Some(value)), matched)
            }
            Self::Cookie { cookie } => {
                present(credential::cookie(attributes.headers, cookie), matched)
            }
            Self::ClientAddress { ipv4_prefix, ipv6_prefix } => {
                let address = forwarding.client(attributes)?;
                Some(owned(network_name(address, *ipv4_prefix, *ipv6_prefix)))
            }
            Self::PathParameter { parameter } => {
                let pattern = matched.pattern?;
                pattern.parameter(parameter, matched.path).map(Cow::Borrowed)
            }
            Self::Json { pointer, unread } => {
                in_body(attributes.headers, pointer, *unread, matched).map(owned)
            }
            Self::TlsClient { name } => nonempty(attributes.headers.client_certificate(*name)?),
            Self::Claim(ClaimSource { token, path, reader }) => {
                let token = token.value(forwarding, attributes, matched)?;
                reader.claim(&token, path).filter(|value| !value.is_empty()).map(owned)
            }
            Self::Expression { text, .. } => {
                let value = text.value(&|one| attribute_of(one, forwarding, attributes, matched));
                (!value.is_empty()).then_some(value)
            }
            Self::Host => Some(owned(host_name(attributes.host?))),
            Self::Route => {
                let pattern = matched.pattern.map(PathPattern::as_str);
                Some(Cow::Borrowed(pattern.unwrap_or(matched.rule).as_bytes()))
            }
            Self::Method => Some(method(attributes.method)),
            Self::Application { name } => nonempty(attributes.headers.application_value(name)?),
            Self::Constant { value } => Some(Cow::Borrowed(value.as_bytes())),
        }
    }
}

/// Returns the value of an attribute of the request, or `None` if the request lacks the attribute.
/// A parameter or a cookie with an empty value has the empty value. Also returns `None` for a
/// dimension, which is not an attribute of the request itself.
pub(super) fn attribute_of<'a>(
    attribute: &'a Attribute,
    forwarding: &Forwarding,
    attributes: &RequestAttributes<'a>,
    matched: &Matched<'a>,
) -> Option<Cow<'a, [u8]>> {
    match attribute {
        Attribute::Method => Some(method(attributes.method)),
        Attribute::Path => Some(matched.path.bytes()),
        Attribute::Query => Some(Cow::Borrowed(attributes.query?.as_bytes())),
        Attribute::Host => Some(owned(host_name(attributes.host?))),
        Attribute::Address => Some(owned(forwarding.client(attributes)?.to_string())),
        Attribute::Header(name) => field(attributes.headers, name, matched),
        Attribute::Parameter(name) => known(query::value(attributes.query?, name), matched),
        Attribute::Cookie(name) => known(credential::cookie(attributes.headers, name), matched),
        Attribute::Dimension(_) => None,
    }
}

/// Returns the value of the field `name`, which must occur once. If it occurs more than once, the
/// function records an ambiguity and returns `None`. Several `cookie` fields are joined to one
/// value, because HTTP/2 allows a client to split the field.
fn field<'a>(headers: &'a dyn Headers, name: &str, matched: &Matched<'_>) -> Option<Cow<'a, [u8]>> {
    match headers.field(name) {
        Field::Absent => None,
        Field::Once(value) => Some(Cow::Borrowed(value)),
        Field::Repeated if name == "cookie" => Some(Cow::Owned(joined_cookies(headers))),
        Field::Repeated => {
            matched.note(Ambiguity::Repeated);
            None
        }
    }
}

/// Returns the value at `pointer` in the body, or `None` if it is missing or empty. If the value is
/// required and the body could not be read, the function records the reason.
fn in_body(
    headers: &dyn Headers,
    pointer: &JsonPointer,
    unread: UnreadBodies,
    matched: &Matched<'_>,
) -> Option<String> {
    let text = headers.in_body(pointer).filter(|text| !text.is_empty());
    if text.is_none() && unread == UnreadBodies::Refuse {
        headers.unread().inspect(|reason| matched.note(*reason));
    }
    text
}

/// Returns the value in `value`, or `None` if it is missing or empty. If it is ambiguous, the
/// function records the ambiguity and returns `None`.
fn present<'a>(
    value: Result<Option<Cow<'a, [u8]>>, Ambiguity>,
    matched: &Matched<'_>,
) -> Option<Cow<'a, [u8]>> {
    known(value, matched).filter(|value| !value.is_empty())
}

/// Returns the value in `value`, which can be empty, or `None` if it is missing. If it is
/// ambiguous, the function records the ambiguity and returns `None`.
fn known<T>(value: Result<Option<T>, Ambiguity>, matched: &Matched<'_>) -> Option<T> {
    value.inspect_err(|ambiguity| matched.note(*ambiguity)).ok().flatten()
}

/// Returns the method in upper case, because some services treat `post` like `POST`.
fn method(sent: &str) -> Cow<'_, [u8]> {
    match sent.bytes().any(|byte| byte.is_ascii_lowercase()) {
        true => Cow::Owned(sent.to_ascii_uppercase().into_bytes()),
        false => Cow::Borrowed(sent.as_bytes()),
    }
}

fn nonempty(text: &str) -> Option<Cow<'_, [u8]>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text.as_bytes()))
}

fn owned<'a>(text: String) -> Cow<'a, [u8]> {
    Cow::Owned(text.into_bytes())
}

/// Returns the subject of `dimensions` in this request.
pub(super) fn subject<'d>(
    dimensions: impl Iterator<Item = &'d Dimension> + Clone,
    forwarding: &Forwarding,
    attributes: &RequestAttributes<'_>,
    matched: &Matched<'_>,
    key: &dyn KeyedHash,
) -> Subject {
    let mut first = dimensions.clone();
    if let (Some(dimension), None) = (first.next(), first.next()) {
        return subject_of_one(dimension, forwarding, attributes, matched, key);
    }
    let values: Vec<_> = dimensions
        .clone()
        .map(|dimension| dimension.source.read(forwarding, attributes, matched))
        .collect();
    let pairs = dimensions.zip(&values).map(|(dimension, read)| (&*dimension.name, encoded(read)));
    Subject::new(pairs, key)
}

/// Returns the subject of a single dimension without creating a list of pairs. Most limits have a
/// single dimension.
fn subject_of_one(
    dimension: &Dimension,
    forwarding: &Forwarding,
    attributes: &RequestAttributes<'_>,
    matched: &Matched<'_>,
    key: &dyn KeyedHash,
) -> Subject {
    let Dimension { name, source } = dimension;
    if source.is_whole_address()
        && let Some(IpAddr::V4(address)) = forwarding.client(attributes)
    {
        let (text, length) = dotted_decimal(address);
        return Subject::new([(&**name, Value::Clear(&text[..length]))], key);
    }
    subject_of_value(name, &source.read(forwarding, attributes, matched), key)
}

/// A value that was read from a request, and whether it is secret. `None` if the request has no
/// such value.
pub(super) type ReadValue<'a> = Option<(Cow<'a, [u8]>, bool)>;

/// Returns the subject with the only dimension `name`, for a value that was read before.
fn subject_of_value(name: &str, read: &ReadValue<'_>, key: &dyn KeyedHash) -> Subject {
    Subject::new([(name, encoded(read))], key)
}

#[inline]
pub(super) fn encoded<'r>(read: &'r ReadValue<'_>) -> Value<'r> {
    match read {
        None => Value::Absent,
        Some((bytes, true)) => Value::Secret(bytes),
        Some((bytes, false)) => Value::Clear(bytes),
    }
}
