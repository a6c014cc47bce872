//! The client's address that is computed behind trusted and untrusted proxies.
#![allow(missing_docs)]

use std::net::IpAddr;

use tollgate_core::policy::address::NetworkError;
use tollgate_core::policy::{AddressHeader, Forwarding, Network};
use tollgate_core::{Headers, RequestAttributes};

/// Returns the client's address that is computed from a request. The proxies in 10.0.0.0/8 and
/// fd00::/8 are trusted.
fn client(header: AddressHeader, hops: Option<usize>, peer: &str, lines: &[&[u8]]) -> String {
    let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| Network::parse(text).unwrap()).into();
    let name = match header {
        AddressHeader::XForwardedFor => "x-forwarded-for",
        AddressHeader::Forwarded => "forwarded",
    };
    let fields: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
    let headers = Fields(fields);
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: Some(peer.parse().unwrap()),
        headers: &headers,
    };
    Forwarding { trusted, header, hops }
        .client(&attributes)
        .map_or_else(|| "none".into(), |found| found.to_string())
}

struct Fields<'a>(Vec<(&'a str, &'a [u8])>);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0[..].value(name, index)
    }
}

const PROXY: &str = "10.0.0.1";

#[test]
fn x_forwarded_for() {
    for (line, expected) in [
        ("192.0.2.1", "192.0.2.1"),
        (" 192.0.2.1 ", "192.0.2.1"),
        ("\t192.0.2.1\t", "192.0.2.1"),
        ("192.0.2.1:80", "192.0.2.1"),
        ("192.0.2.1:65535", "192.0.2.1"),
        ("192.0.2.1:65536", PROXY),
        ("192.0.2.1:", PROXY),
        ("192.0.2.1:+80", PROXY),
        ("192.0.2.1:80:80", PROXY),
        ("192.0.2.1:_port", "192.0.2.1"),
        ("192.0.2.1:_", PROXY),
        ("192.0.2.256", PROXY),
        ("192.0.2", PROXY),
        ("192.0.2.01", PROXY),
        ("0xC0000201", PROXY),
        ("3221225985", PROXY),
        ("192.0.2.1/32", PROXY),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]:", PROXY),
        ("[2001:db8::1]443", PROXY),
        ("[2001:db8::1", PROXY),
        ("2001:db8::1]", PROXY),
        ("[192.0.2.1]", PROXY),
        ("[]", PROXY),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8:0:0:0:0:0:1", "2001:db8::1"),
        ("fe80::1%eth0", PROXY),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("::192.0.2.1", "::c000:201"),
        ("\"192.0.2.1\"", "192.0.2.1"),
        ("\"[2001:db8::1]:80\"", "2001:db8::1"),
        ("\"192.0.2.1", PROXY),
        ("192.0.2.1\"", PROXY),
        ("", PROXY),
        ("   ", PROXY),
        (",", PROXY),
        (",,,", PROXY),
        ("unknown", PROXY),
        ("_hidden", PROXY),
        ("localhost", PROXY),
        ("for=192.0.2.1", PROXY),
        ("-", PROXY),
        // The last address counts, because the nearest proxy wrote it. Clients can forge the
        // addresses before it.
        ("6.6.6.6, 192.0.2.1", "192.0.2.1"),
        ("6.6.6.6,192.0.2.1", "192.0.2.1"),
        ("6.6.6.6 192.0.2.1", PROXY),
        ("6.6.6.6;192.0.2.1", PROXY),
        ("unknown, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.9, 192.0.2.1", "192.0.2.1"),
        ("garbage \u{fe}, 192.0.2.1", "192.0.2.1"),
        // A regression: a quote that the client opened included the element of the proxy.
        ("\", 192.0.2.1", "192.0.2.1"),
        ("\"6.6.6.6, 192.0.2.1", "192.0.2.1"),
        ("\"a\\\", 192.0.2.1", "192.0.2.1"),
        (", 192.0.2.1", "192.0.2.1"),
        // Empty elements are ignored.
        ("192.0.2.1,", "192.0.2.1"),
        ("192.0.2.1, ,", "192.0.2.1"),
        ("192.0.2.1, , 10.0.0.2", "192.0.2.1"),
        // Trusted proxies are skipped.
        ("192.0.2.1, 10.0.0.2", "192.0.2.1"),
        ("192.0.2.1, 10.0.0.3, 10.0.0.2", "192.0.2.1"),
        ("192.0.2.1, fd00::2, 10.0.0.2", "192.0.2.1"),
        ("192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1"),
        ("192.0.2.1, [fd00::2]:80", "192.0.2.1"),
        ("6.6.6.6, 192.0.2.1, 10.0.0.2", "192.0.2.1"),
        ("6.6.6.6, unknown, 10.0.0.2", "10.0.0.2"),
        ("unknown, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.2", "10.0.0.2"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("192.0.2.1, 11.0.0.2", "11.0.0.2"),
    ] {
        let lines = [line.as_bytes()];
        let found = client(AddressHeader::XForwardedFor, None, PROXY, &lines);
        assert_eq!(found, expected, "X-Forwarded-For: {line:?}");
    }
}

#[test]
fn forwarded() {
    for (line, expected) in [
        ("for=192.0.2.1", "192.0.2.1"),
        ("For=192.0.2.1", "192.0.2.1"),
        ("FOR=192.0.2.1", "192.0.2.1"),
        (" for = 192.0.2.1 ", "192.0.2.1"),
        ("for=\"192.0.2.1\"", "192.0.2.1"),
        ("for=\"192.0.2.1:80\"", "192.0.2.1"),
        ("for=192.0.2.1:80", "192.0.2.1"),
        ("for=\"192.0.2.1:_x\"", "192.0.2.1"),
        ("for=\"[2001:db8::1]\"", "2001:db8::1"),
        ("for=\"[2001:db8::1]:80\"", "2001:db8::1"),
        ("for=[2001:db8::1]", "2001:db8::1"),
        ("for=\"2001:db8::1\"", "2001:db8::1"),
        ("for=\"[::ffff:192.0.2.1]\"", "192.0.2.1"),
        ("for=unknown", PROXY),
        ("for=\"unknown\"", PROXY),
        ("for=_obf", PROXY),
        ("for=\"_obf:80\"", PROXY),
        ("for=", PROXY),
        ("for", PROXY),
        ("192.0.2.1", PROXY),
        ("by=192.0.2.1", PROXY),
        ("", PROXY),
        ("for=192.0.2.1;by=10.0.0.1", "192.0.2.1"),
        ("by=10.0.0.1;for=192.0.2.1", "192.0.2.1"),
        ("proto=https;for=192.0.2.1;host=a", "192.0.2.1"),
        ("proto=https; for=192.0.2.1 ; host=a", "192.0.2.1"),
        (";;for=192.0.2.1;;", "192.0.2.1"),
        ("xfor=6.6.6.6;for=192.0.2.1", "192.0.2.1"),
        ("for=6.6.6.6, for=192.0.2.1", "192.0.2.1"),
        ("for=192.0.2.1, for=10.0.0.2", "192.0.2.1"),
        ("for=192.0.2.1;by=10.0.0.3, for=10.0.0.2;by=10.0.0.1", "192.0.2.1"),
        ("for=192.0.2.1, by=10.0.0.1", PROXY),
        ("for=192.0.2.1,", "192.0.2.1"),
        ("for=unknown, for=10.0.0.2", "10.0.0.2"),
        // Separators inside quotes do not separate elements.
        ("for=192.0.2.1;host=\"a,b\"", "192.0.2.1"),
        ("for=192.0.2.1;host=\"a;b\"", "192.0.2.1"),
        ("host=\"a, for=6.6.6.6\";for=192.0.2.1", "192.0.2.1"),
        ("host=\"a;for=6.6.6.6\";for=192.0.2.1", "192.0.2.1"),
        ("for=192.0.2.1;host=\"a;for=6.6.6.6\"", "192.0.2.1"),
        ("for=192.0.2.1;host=\"a\\\";for=6.6.6.6\"", "192.0.2.1"),
        ("for=192.0.2.1;host=\"a\\\", for=6.6.6.6\"", "192.0.2.1"),
        ("for=192.0.2.1;host=\"a\\\\\"", "192.0.2.1"),
        ("for=192.0.2.1;host=\"\\\"\"", "192.0.2.1"),
        // A client's open quote does not include the proxy's element.
        ("for=\"x, for=192.0.2.1", "192.0.2.1"),
        ("\", for=192.0.2.1", "192.0.2.1"),
        ("for=\"6.6.6.6\\, for=192.0.2.1", "192.0.2.1"),
        ("x=\", for=192.0.2.1;host=\"h\"", "192.0.2.1"),
        ("\\\", for=192.0.2.1", "192.0.2.1"),
    ] {
        let found = client(AddressHeader::Forwarded, None, PROXY, &[line.as_bytes()]);
        assert_eq!(found, expected, "Forwarded: {line:?}");
    }
}

#[test]
fn lines_are_one_list() {
    let client = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        client(AddressHeader::XForwardedFor, None, PROXY, &lines)
    };
    assert_eq!(client(&[]), PROXY);
    assert_eq!(client(&["6.6.6.6", "192.0.2.1"]), "192.0.2.1");
    assert_eq!(client(&["192.0.2.1", "10.0.0.2"]), "192.0.2.1");
    assert_eq!(client(&["192.0.2.1", "", " ", "10.0.0.2"]), "192.0.2.1");
    assert_eq!(client(&["6.6.6.6", "192.0.2.1, 10.0.0.3", "10.0.0.2"]), "192.0.2.1");
    assert_eq!(client(&["192.0.2.1", "unknown"]), PROXY);
    assert_eq!(client(&["\"", "192.0.2.1"]), "192.0.2.1");
}

#[test]
fn anonymous_clients_are_not_believed() {
    for header in [AddressHeader::XForwardedFor, AddressHeader::Forwarded] {
        for peer in ["192.0.2.9", "2001:db8::9", "9.255.255.255", "11.0.0.0", "fc00::1"] {
            let lines: [&[u8]; 2] = [b"for=6.6.6.6", b"6.6.6.6"];
            assert_eq!(client(header, None, peer, &lines), peer, "{header:?}");
        }
    }
    let lines: [&[u8]; 1] = [b"192.0.2.1"];
    let mapped = "::ffff:10.0.0.1";
    assert_eq!(client(AddressHeader::XForwardedFor, None, mapped, &lines), "192.0.2.1");
    let stranger = client(AddressHeader::XForwardedFor, None, "::ffff:192.0.2.9", &lines);
    assert_eq!(stranger, "192.0.2.9");
}

#[test]
fn hops_are_counted() {
    let lines: [&[u8]; 1] = [b"6.6.6.6, 192.0.2.1, 10.0.0.3, 10.0.0.2"];
    let hops = |hops| client(AddressHeader::XForwardedFor, hops, PROXY, &lines);
    let expected = [PROXY, "10.0.0.2", "10.0.0.3", "192.0.2.1", "192.0.2.1"];
    for (count, expected) in expected.into_iter().enumerate() {
        assert_eq!(hops(Some(count)), expected, "{count} hops");
    }
    assert_eq!(hops(None), "192.0.2.1");
    let endless = "10.0.0.2, ".repeat(100_000);
    let lines: [&[u8]; 1] = [endless.as_bytes()];
    assert_eq!(client(AddressHeader::XForwardedFor, None, PROXY, &lines), "10.0.0.2");
}

#[test]
fn networks() {
    for (text, expected) in [
        ("10.0.0.0/8", Ok("10.0.0.0/8")),
        ("10.0.0.1", Ok("10.0.0.1/32")),
        ("0.0.0.0/0", Ok("0.0.0.0/0")),
        ("2001:db8::/32", Ok("2001:db8::/32")),
        ("::1", Ok("::1/128")),
        ("::/0", Ok("::/0")),
        ("::ffff:10.0.0.0/104", Ok("10.0.0.0/8")),
        ("::ffff:0.0.0.0/96", Ok("0.0.0.0/0")),
        ("::ffff:10.0.0.0/8", Err(NetworkError::Mapped)),
        ("::ffff:10.0.0.0/95", Err(NetworkError::Mapped)),
        ("10.0.0.1/8", Err(NetworkError::HostBits)),
        ("2001:db8::1/64", Err(NetworkError::HostBits)),
        ("10.0.0.0/33", Err(NetworkError::Prefix)),
        ("::/129", Err(NetworkError::Prefix)),
        ("10.0.0.0/999", Err(NetworkError::Prefix)),
        ("10.0.0.0/", Err(NetworkError::Syntax)),
        ("10.0.0.0/+8", Err(NetworkError::Syntax)),
        ("10.0.0.0/-1", Err(NetworkError::Syntax)),
        ("10.0.0.0/8/8", Err(NetworkError::Syntax)),
        ("10/8", Err(NetworkError::Syntax)),
        ("", Err(NetworkError::Syntax)),
        ("/8", Err(NetworkError::Syntax)),
        ("localhost", Err(NetworkError::Syntax)),
        (" 10.0.0.0/8", Err(NetworkError::Syntax)),
    ] {
        let found = Network::parse(text).map(|network| network.to_string());
        assert_eq!(found.as_deref().map_err(|error| *error), expected, "{text:?}");
    }
}

#[test]
fn networks_contain_their_own_family_alone() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
        ("192.0.2.1", "192.0.2.1", "192.0.2.0"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("::/0", "2001:db8::1", "192.0.2.1"),
        ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
    ] {
        let network = Network::parse(network).unwrap();
        assert!(network.contains(address(inside)), "{network} holds {inside}");
        assert!(!network.contains(address(outside)), "{network} does not hold {outside}");
    }
}
