//! The client's address behind trusted proxies.

use std::net::IpAddr;

use tollgate_core::policy::{AddressHeader, Forwarding, Network};
use tollgate_core::{Headers, RequestAttributes};

const CLIENT: &str = "198.51.100.7";

/// Field lines with lower-case names, in the order received.
pub(crate) struct Fields<'a>(pub(crate) &'a [(&'a str, &'a [u8])]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.value(name, index)
    }
}

/// Whatever a client sends, the address that the nearest trusted proxy reported is the client's.
pub fn check(data: &[u8]) {
    let Some((sent, place)) = crate::cut(data) else { return };
    // A header field has no line ends.
    if sent.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return;
    }
    for (header, name, reported) in [
        (AddressHeader::XForwardedFor, "x-forwarded-for", CLIENT.to_owned()),
        (AddressHeader::Forwarded, "forwarded", format!("for={CLIENT};proto=https")),
    ] {
        let trusted = vec![Network::parse("10.0.0.0/8").unwrap()];
        let forwarding = Forwarding { trusted, hops: None, header };
        let client = |fields: &[(&str, &[u8])]| {
            let attributes = RequestAttributes {
                method: "GET",
                path: "/",
                query: None,
                host: None,
                peer: Some("10.0.0.1".parse::<IpAddr>().unwrap()),
                headers: &Fields(fields),
            };
            forwarding.client(&attributes)
        };
        let expected = Some(CLIENT.parse::<IpAddr>().unwrap());
        // The proxy adds a field line, or an element to the client's line.
        let joined = [sent, b", ", reported.as_bytes()].concat();
        let fields = [(name, &sent[..place]), (name, &sent[place..]), (name, reported.as_bytes())];
        assert_eq!(client(&fields), expected);
        assert_eq!(client(&[(name, joined.as_slice())]), expected);
        // Without the proxy's own element the result is some address, not a panic.
        let _ = client(&[(name, sent)]);
    }
    if let Ok(text) = std::str::from_utf8(sent)
        && let Ok(network) = Network::parse(text)
    {
        assert_eq!(Network::parse(&network.to_string()), Ok(network));
    }
}
