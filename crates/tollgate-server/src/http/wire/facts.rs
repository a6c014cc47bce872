//! The attributes of a request. A caller that has received the request sends them.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use axum::http::{HeaderName, HeaderValue, Method};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use tollgate::model::{Headers, RequestAttributes};

use super::{Text, given};
use crate::http_connection::MAX_HEAD_BYTES;

/// The most header fields of one request.
const MAX_FIELDS: usize = 100;

/// The attributes of a request, to which the policy's rules are applied.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RequestFacts<'a> {
    /// The method, case-sensitive: `GET`.
    #[serde(borrow, deserialize_with = "method")]
    #[schemars(
        with = "String",
        regex(pattern = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
        length(max = 32)
    )]
    method: Cow<'a, str>,
    /// The path as it was sent, with the query if rules or subjects of the policy read it.
    #[serde(borrow, deserialize_with = "path")]
    #[schemars(with = "String", regex(pattern = r"^/[!-~]*$"), length(max = 32_768))]
    path: Cow<'a, str>,
    /// The requested host, with or without a port.
    #[serde(borrow, default, deserialize_with = "host")]
    #[schemars(with = "String", regex(pattern = r"^[!-~]+$"), length(max = 255))]
    host: Option<Cow<'a, str>>,
    /// The address that the request came from. The policy's `trusted_proxies` decide whether its
    /// forwarding header fields are trusted.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String", extend("anyOf" = [{ "format": "ipv4" }, { "format": "ipv6" }]))]
    client_address: Option<IpAddr>,
    /// Header fields. A field that was sent on several lines has a list of values.
    #[serde(default)]
    headers: HeaderFields,
}

impl RequestFacts<'_> {
    /// Returns the attributes for the policy.
    pub(in crate::http) fn facts(&self) -> RequestAttributes<'_> {
        let split = self.path.split_once('?').map(|(path, query)| (path, Some(query)));
        let (path, query) = split.unwrap_or((&*self.path, None));
        RequestAttributes {
            method: &self.method,
            path,
            query,
            host: self.host.as_deref(),
            peer: self.client_address,
            headers: &self.headers,
        }
    }
}

fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    const LONGEST: usize = 32;
    let Text(text) = Text::deserialize(deserializer)?;
    let is_method = text.len() <= LONGEST && Method::from_bytes(text.as_bytes()).is_ok();
    if is_method { Ok(text) } else { Err(invalid(&text, "a method such as \"GET\"")) }
}

fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    let Text(text) = Text::deserialize(deserializer)?;
    let is_path = text.starts_with('/') && is_visible(&text) && text.len() <= MAX_HEAD_BYTES;
    if is_path { Ok(text) } else { Err(invalid(&text, "a path that begins with \"/\"")) }
}

fn host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    const LONGEST: usize = 255;
    let Text(text) = Text::deserialize(deserializer)?;
    let is_host = (1..=LONGEST).contains(&text.len()) && is_visible(&text);
    if is_host { Ok(Some(text)) } else { Err(invalid(&text, "a host such as \"example.com:443\"")) }
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn invalid<E: Error>(text: &str, expected: &'static str) -> E {
    /// The most bytes of a text that an error message repeats.
    const MAX_MESSAGE_CHARS: usize = 100;
    let message = text.char_indices().nth(MAX_MESSAGE_CHARS).map_or(text, |(end, _)| &text[..end]);
    E::invalid_value(Unexpected::Str(message), &expected)
}

/// Header fields with names in lower case.
#[derive(Debug, Default)]
struct HeaderFields(Vec<(HeaderName, Vec<HeaderValue>)>);

impl Headers for HeaderFields {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        let (_, values) = self.0.iter().find(|(field, _)| *field == name)?;
        values.get(index).map(HeaderValue::as_bytes)
    }
}

impl JsonSchema for HeaderFields {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HeaderFields".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let value = r"^[\t -~]*$";
        json_schema!({
            "type": "object",
            "maxProperties": MAX_FIELDS,
            "propertyNames": { "pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
            "additionalProperties": { "anyOf": [
                { "type": "string", "pattern": value },
                { "type": "array", "items": { "type": "string", "pattern": value } },
            ]},
        })
    }
}

impl<'de> Deserialize<'de> for HeaderFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamesAndValues)
    }
}

struct NamesAndValues;

impl<'de> Visitor<'de> for NamesAndValues {
    type Value = HeaderFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of header names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<HeaderFields, A::Error> {
        let mut fields: Vec<(HeaderName, Vec<HeaderValue>)> = Vec::new();
        while let Some(text) = members.next_key::<String>()? {
            let name = HeaderName::from_bytes(text.as_bytes())
                .map_err(|_| invalid::<A::Error>(&text, "the name of a header field"))?;
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format_args!("the field {name:?} is given twice")));
            }
            let Lines(values) = members.next_value()?;
            fields.push((name, values));
            if fields.iter().map(|(_, values)| values.len().max(1)).sum::<usize>() > MAX_FIELDS {
                return Err(A::Error::custom(format_args!("more than {MAX_FIELDS} header fields")));
            }
        }
        Ok(HeaderFields(fields))
    }
}

/// The values of one field.
struct Lines(Vec<HeaderValue>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Lines;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of a header field, or a list of values")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Lines, E> {
        Ok(Lines(vec![field_value(value)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Lines, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element::<String>()? {
            values.push(field_value(&value)?);
        }
        Ok(Lines(values))
    }
}

fn field_value<E: Error>(text: &str) -> Result<HeaderValue, E> {
    let value = HeaderValue::from_str(text);
    // The value is not repeated in the error, because it may be a credential.
    value.map_err(|_| {
        E::custom(
            "the value of a header field contains control characters or other invalid characters",
        )
    })
}
