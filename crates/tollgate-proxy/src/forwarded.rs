//! The fields that describe the client to the upstream: `X-Forwarded-*`, `Forwarded` (RFC 7239) and
//! `Via`.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Version, header, header::Entry};
use tollgate::model::policy::Network;

use crate::settings::ForwardedFields;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Whether the proxy trusts the forwarding fields that a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
}

impl Trust {
    /// Returns `Trusted` if `peer` is within `networks`. An IPv4-mapped IPv6 address counts as the
    /// IPv4 address.
    pub(crate) fn in_peer(peer: Option<IpAddr>, networks: &[Network]) -> Self {
        let known = peer.map(|peer| peer.to_canonical());
        match known.is_some_and(|peer| networks.iter().any(|network| network.contains(peer))) {
            true => Self::Trusted,
            false => Self::Untrusted,
        }
    }
}

/// The protocol of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// A peer's address and protocol as texts for the forwarding fields. The texts are formatted once
/// for all requests of a connection.
#[derive(Debug)]
pub(crate) struct PeerName {
    address: HeaderValue,
    node: String,
    scheme: Scheme,
}

impl PeerName {
    pub(crate) fn of(peer: Option<IpAddr>, scheme: Scheme) -> Self {
        let peer = peer.map(|peer| peer.to_canonical());
        let address = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
        let node = match peer {
            Some(IpAddr::V6(_)) => format!("\"[{address}]\""),
            _ => address.clone(),
        };
        let address = HeaderValue::try_from(address);
        Self { address: address.unwrap_or(HeaderValue::from_static("unknown")), node, scheme }
    }
}

/// Writes the forwarding fields for a request from `peer` for `host`. The fields that a trusted
/// peer sent are extended, and the fields of any other peer are replaced.
pub(crate) fn add_forwarding_fields(
    headers: &mut HeaderMap,
    peer: &PeerName,
    host: &HeaderValue,
    trust: Trust,
    fields: ForwardedFields,
) {
    if trust == Trust::Untrusted {
        remove_forwarding_fields(headers);
    }
    if matches!(fields, ForwardedFields::XForwarded | ForwardedFields::Both) {
        append_to_list(headers, &X_FORWARDED_FOR, peer.address.clone());
        let protocol = HeaderValue::from_static(peer.scheme.name());
        headers.entry(X_FORWARDED_PROTO).or_insert(protocol);
        headers.entry(X_FORWARDED_HOST).or_insert_with(|| host.clone());
    }
    if matches!(fields, ForwardedFields::Forwarded | ForwardedFields::Both)
        && let Ok(element) = HeaderValue::try_from(forwarded_element(peer, host))
    {
        append_to_list(headers, &header::FORWARDED, element);
    }
}

/// Adds this proxy to the field `Via`, with `received`, the HTTP version of the received message.
pub(crate) fn add_via(headers: &mut HeaderMap, received: Version) {
    let via = HeaderValue::from_static(match received {
        Version::HTTP_2 => "2 tollgate",
        Version::HTTP_10 => "1.0 tollgate",
        _ => "1.1 tollgate",
    });
    append_to_list(headers, &header::VIA, via);
}

/// Removes every field that upstreams may read as the client's address, protocol or host. Spellings
/// with `_` instead of `-` are removed too, because CGI gateways treat both characters as the same.
fn remove_forwarding_fields(headers: &mut HeaderMap) {
    let claims: Vec<HeaderName> =
        headers.keys().filter(|name| is_forwarding_field(name.as_str())).cloned().collect();
    for name in claims {
        headers.remove(name);
    }
}

/// Returns whether upstreams may read a field of this name as the client's address, protocol or
/// host.
pub(crate) fn is_forwarding_field(name: &str) -> bool {
    starts_with_ignore_case(name, "x-forwarded-")
        || name == "forwarded"
        || (name.len() == "x-real-ip".len() && starts_with_ignore_case(name, "x-real-ip"))
}

/// Returns whether `name` starts with `beginning`. Case is ignored, and `_` equals `-`.
fn starts_with_ignore_case(name: &str, beginning: &str) -> bool {
    let dashed = |byte| if byte == b'_' { b'-' } else { byte };
    name.len() >= beginning.len()
        && name.bytes().zip(beginning.bytes()).all(|(is, like)| dashed(is) == like)
}

/// Joins all lines of the list field `name` to one line, and appends `member`. Lines that are not
/// valid in a list are dropped.
fn append_to_list(headers: &mut HeaderMap, name: &HeaderName, member: HeaderValue) {
    let mut lines = match headers.entry(name) {
        Entry::Vacant(vacant) => {
            vacant.insert(member);
            return;
        }
        Entry::Occupied(lines) => lines,
    };
    let members = lines.iter().chain([&member]).filter_map(|line| line.to_str().ok());
    let list = members.collect::<Vec<_>>().join(", ");
    if let Ok(list) = HeaderValue::try_from(list) {
        lines.insert(list);
    }
}

fn forwarded_element(PeerName { node, scheme, .. }: &PeerName, host: &HeaderValue) -> String {
    let scheme = scheme.name();
    let Ok(host) = host.to_str() else { return format!("for={node};proto={scheme}") };
    let mut element = String::with_capacity(node.len() + host.len() + 32);
    for part in ["for=", node.as_str(), ";host=\""] {
        element.push_str(part);
    }
    for character in host.chars() {
        if matches!(character, '"' | '\\') {
            element.push('\\');
        }
        element.push(character);
    }
    element.push_str("\";proto=");
    element.push_str(scheme);
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HeaderValue = HeaderValue::from_static("api.example:8080");

    fn written(
        sent: &[(&'static str, &'static str)],
        peer: &str,
        trusted: &[&str],
        fields: ForwardedFields,
    ) -> HeaderMap {
        let mut headers: HeaderMap = sent
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let networks: Vec<Network> =
            trusted.iter().map(|network| Network::parse(network).expect("a network")).collect();
        let peer: Option<IpAddr> = peer.parse().ok();
        add_forwarding_fields(
            &mut headers,
            &PeerName::of(peer, Scheme::Http),
            &HOST,
            Trust::in_peer(peer, &networks),
            fields,
        );
        headers
    }

    #[test]
    fn an_untrusted_client_forges_nothing() {
        let sent = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-proto", "https"),
            ("x_forwarded_for", "1.1.1.1"),
            ("x-forwarded-port", "1"),
            ("x-real-ip", "1.1.1.1"),
            ("forwarded", "for=1.1.1.1"),
        ];
        let headers = written(&sent, "203.0.113.7", &["10.0.0.0/8"], ForwardedFields::Both);
        assert_eq!(headers["x-forwarded-for"], "203.0.113.7");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert_eq!(headers["x-forwarded-host"], "api.example:8080");
        assert_eq!(headers["forwarded"], "for=203.0.113.7;host=\"api.example:8080\";proto=http");
        assert_eq!(headers.len(), 4);
        assert!(written(&sent, "203.0.113.7", &[], ForwardedFields::Neither).is_empty());
    }

    #[test]
    fn a_trusted_proxy_is_appended_to() {
        let sent = [
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", "10.0.0.9"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "shop.example"),
            ("forwarded", "for=198.51.100.1;proto=https"),
        ];
        let headers = written(&sent, "::ffff:10.1.2.3", &["10.0.0.0/8"], ForwardedFields::Both);
        assert_eq!(headers["x-forwarded-for"], "198.51.100.1, 10.0.0.9, 10.1.2.3");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["x-forwarded-host"], "shop.example");
        assert_eq!(
            headers["forwarded"],
            "for=198.51.100.1;proto=https, for=10.1.2.3;host=\"api.example:8080\";proto=http"
        );
    }

    #[test]
    fn an_ipv6_address_is_quoted_in_forwarded_only() {
        let headers = written(&[], "2001:db8::1", &[], ForwardedFields::Both);
        assert_eq!(headers["x-forwarded-for"], "2001:db8::1");
        assert_eq!(
            headers["forwarded"],
            "for=\"[2001:db8::1]\";host=\"api.example:8080\";proto=http"
        );
    }

    #[test]
    fn one_family_is_written_when_one_is_asked_for() {
        let x = written(&[], "192.0.2.1", &[], ForwardedFields::XForwarded);
        assert!(x.contains_key("x-forwarded-for") && !x.contains_key("forwarded"));
        let standard = written(&[], "192.0.2.1", &[], ForwardedFields::Forwarded);
        assert!(!standard.contains_key("x-forwarded-for") && standard.contains_key("forwarded"));
    }

    #[test]
    fn a_client_over_tls_is_forwarded_as_https() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-proto", HeaderValue::from_static("http"));
        let peer = PeerName::of("192.0.2.1".parse().ok(), Scheme::Https);
        let both = ForwardedFields::Both;
        add_forwarding_fields(&mut headers, &peer, &HOST, Trust::Untrusted, both);
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["forwarded"], "for=192.0.2.1;host=\"api.example:8080\";proto=https");
    }

    #[test]
    fn via_names_the_received_version() {
        let mut headers = HeaderMap::new();
        headers.insert(header::VIA, HeaderValue::from_static("1.1 edge"));
        add_via(&mut headers, Version::HTTP_2);
        assert_eq!(headers["via"], "1.1 edge, 2 tollgate");
    }
}
