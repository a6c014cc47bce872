//! The same proxies in `X-Forwarded-For` and in `Forwarded`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use tollgate_core::RequestAttributes;
use tollgate_core::policy::{AddressHeader, Forwarding, Network};

use crate::address::Fields;

/// The most proxies of a request.
const MOST: usize = 24;

static TRUSTED: LazyLock<[Network; 2]> =
    LazyLock::new(|| ["10.0.0.0/8", "fd00::/8"].map(|text| Network::parse(text).unwrap()));

/// One proxy's report of the address that it received the request from.
struct Hop {
    /// `None` for a name that hides it.
    address: Option<IpAddr>,
    port: Option<u16>,
    /// Whether the next report is in a field line of its own.
    ends_line: bool,
    /// Chooses one of several ways to write it.
    style: u8,
}

/// Both headers name the same client, which is the one that a plain loop over the list finds.
pub fn check(data: &[u8]) {
    let Some((&[settings], rest)) = data.split_first_chunk::<1>() else { return };
    let hops: Vec<_> = rest.chunks_exact(3).take(MOST).map(hop).collect();
    let most = Some(usize::from(settings >> 4)).filter(|most| *most > 0);
    let trusted: Vec<_> = TRUSTED.iter().take(usize::from(settings & 3)).cloned().collect();
    let peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let expected = nearest_untrusted(peer, &hops, &trusted, most);
    for (header, name) in
        [(AddressHeader::XForwardedFor, "x-forwarded-for"), (AddressHeader::Forwarded, "forwarded")]
    {
        let lines = lines(&hops, header);
        let fields: Vec<_> = lines.iter().map(|line| (name, line.as_bytes())).collect();
        let attributes = RequestAttributes {
            method: "GET",
            path: "/",
            query: None,
            host: None,
            peer: Some(peer),
            headers: &Fields(&fields),
        };
        let forwarding = Forwarding { trusted: trusted.clone(), hops: most, header };
        assert_eq!(forwarding.client(&attributes), Some(expected), "{lines:?}");
    }
}

fn hop(bytes: &[u8]) -> Hop {
    let (kind, last) = (bytes[0], bytes[1]);
    let v4 = |a, b, c| Ipv4Addr::new(a, b, c, last);
    let v6 = |a, b| Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, last.into());
    let address: Option<IpAddr> = match kind % 8 {
        0 | 1 => Some(v4(10, 0, 0).into()),
        2 => Some(v4(198, 51, 100).into()),
        3 => Some(v6(0xfd00, 0).into()),
        4 => Some(v6(0x2001, 0xdb8).into()),
        5 => Some(v4(10, 0, 0).to_ipv6_mapped().into()),
        6 => Some(v4(192, 0, 2).to_ipv6_mapped().into()),
        _ => None,
    };
    Hop {
        address,
        port: (kind & 8 != 0).then_some(u16::from(last) * 7),
        ends_line: kind & 16 != 0,
        style: bytes[2],
    }
}

/// Goes from this node towards the client, as long as the address is that of a trusted proxy.
fn nearest_untrusted(
    peer: IpAddr,
    hops: &[Hop],
    trusted: &[Network],
    most: Option<usize>,
) -> IpAddr {
    let mut nearest = peer;
    for hop in hops.iter().rev().take(most.unwrap_or(usize::MAX)) {
        if !trusted.iter().any(|network| network.contains(nearest)) {
            break;
        }
        let Some(address) = hop.address else { break };
        nearest = address.to_canonical();
    }
    nearest
}

/// Writes the reports as field lines.
fn lines(hops: &[Hop], header: AddressHeader) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for hop in hops {
        let node = match (hop.address, hop.port) {
            (None, _) => if hop.style & 1 == 0 { "unknown" } else { "_hidden" }.to_owned(),
            (Some(IpAddr::V4(address)), None) => address.to_string(),
            (Some(IpAddr::V4(address)), Some(port)) => format!("{address}:{port}"),
            (Some(IpAddr::V6(address)), None) => format!("[{address}]"),
            (Some(IpAddr::V6(address)), Some(port)) => format!("[{address}]:{port}"),
        };
        let element = match header {
            AddressHeader::XForwardedFor => node,
            AddressHeader::Forwarded => {
                let is_token = !node.contains([':', '[']);
                let node =
                    if is_token && hop.style & 2 == 0 { node } else { format!("\"{node}\"") };
                let name = ["for", "For", "FOR"][usize::from(hop.style >> 2) % 3];
                match hop.style >> 4 & 3 {
                    0 => format!("{name}={node}"),
                    1 => format!("{name}={node};proto=https"),
                    2 => format!("by=\"a;b,c\";{name}={node}"),
                    _ => format!("host=\"x\\\",y\"; {name}={node} ;proto=http"),
                }
            }
        };
        if !line.is_empty() {
            line.push_str([",", ", ", " , ,"][usize::from(hop.style >> 6) % 3]);
        }
        line.push_str(&element);
        if hop.ends_line {
            lines.push(std::mem::take(&mut line));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}
