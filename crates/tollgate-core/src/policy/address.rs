//! The client's address behind trusted proxies.
//!
//! Source: RFC 7239 (`Forwarded`) and the de facto `X-Forwarded-For`. Both are lists to which each
//! proxy appends the address of its client. A list is therefore read from the right, up to the
//! first address that does not belong to a trusted proxy. A client can forge everything to the left
//! of that address.
//!
//! This module uses no library, because the core has no dependencies. The crate `ipnet` could
//! replace only the type [`Network`], which is 110 of 340 lines.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use crate::attributes::{Headers, RequestAttributes};

/// The largest number of proxies through which the path of a request is traced back to the client.
pub const MAX_HOPS: usize = 32;

/// The header that the trusted proxies write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// The settings of the proxies that are trusted to report the client's address. By default no proxy
/// is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// The networks of the proxies.
    pub trusted: Vec<Network>,
    /// The header that the trusted proxies write.
    pub header: AddressHeader,
    /// The largest number of proxies between a client and this node. Larger values than
    /// [`MAX_HOPS`], and `None`, have the effect of [`MAX_HOPS`].
    pub hops: Option<usize>,
}

/// A network of IP addresses: an address, and the number of leading bits that are the same in all
/// addresses of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// The reason why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// The text is neither an address nor an address with a prefix.
    Syntax,
    /// The prefix is longer than the address.
    Prefix,
    /// The text is an IPv4-mapped IPv6 address with a prefix below 96. Such a network would include
    /// all of IPv4.
    Mapped,
    /// Bits after the prefix are set, so it is unclear which network is meant.
    HostBits,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "a network is an address such as 10.0.0.1, or 10.0.0.0/8",
            Self::Prefix => "the prefix is longer than the address",
            Self::Mapped => "write an IPv4 network in the form of IPv4, such as 10.0.0.0/8",
            Self::HostBits => "bits after the prefix are set: use the first address of the network",
        })
    }
}

impl core::error::Error for NetworkError {}

impl Network {
    /// Parses `10.0.0.0/8`, `2001:db8::/32` or a single address.
    ///
    /// # Errors
    /// [`NetworkError`] if the text is not a network.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Syntax)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(text) if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(NetworkError::Syntax);
            }
            Some(text) => text.parse().map_err(|_| NetworkError::Prefix)?,
        };
        if prefix > bits {
            return Err(NetworkError::Prefix);
        }
        let (address, prefix) = match address {
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(_) if prefix < 96 => return Err(NetworkError::Mapped),
                Some(v4) => (IpAddr::V4(v4), prefix - 96),
                None => (address, prefix),
            },
            IpAddr::V4(_) => (address, prefix),
        };
        if mask(address, prefix) != address {
            return Err(NetworkError::HostBits);
        }
        Ok(Self { address, prefix })
    }

    /// Returns the first and the last address.
    #[must_use]
    pub fn range(&self) -> (IpAddr, IpAddr) {
        let last = match self.address {
            IpAddr::V4(first) => {
                let rest = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V4((first.to_bits() | rest).into())
            }
            IpAddr::V6(first) => {
                let rest = u128::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V6((first.to_bits() | rest).into())
            }
        };
        (self.address, last)
    }

    /// Returns the number of leading bits that are the same in all addresses of the network.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Returns whether this is an IPv4 network.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Returns the larger network with a prefix of `prefix` bits that contains this network.
    /// Returns `None` if this network has a shorter prefix than `prefix`.
    #[must_use]
    pub fn within(&self, prefix: u8) -> Option<Self> {
        (prefix <= self.prefix).then(|| Self { address: mask(self.address, prefix), prefix })
    }

    /// Returns whether the network contains `address`.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && mask(address, self.prefix) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Forwarding {
    /// Returns the client's address. If the peer is not a trusted proxy, this is the address of the
    /// peer. Otherwise it is the nearest address in the forwarding header that does not belong to a
    /// trusted proxy. If the search reaches an invalid address or has passed [`hops`](Self::hops)
    /// proxies, the result is the last valid address that the search has read. Returns `None` if
    /// the listener does not know the peer's address.
    #[must_use]
    pub fn client(&self, attributes: &RequestAttributes<'_>) -> Option<IpAddr> {
        let mut nearest = plain(attributes.peer?);
        if self.trusted.is_empty() {
            return Some(nearest);
        }
        let hops = self.hops.unwrap_or(MAX_HOPS).min(MAX_HOPS);
        let mut forwarded = ForwardedHops::new(attributes.headers, self.header);
        for _ in 0..hops {
            if !self.trusted.iter().any(|network| network.contains(nearest)) {
                break;
            }
            // An invalid address ends the search. The result is then the last address before it,
            // which belongs to a trusted proxy.
            let Some(address) = forwarded.next_from_the_right() else { break };
            nearest = address;
        }
        Some(nearest)
    }
}

/// The addresses in the forwarding header, which are read from the last to the first.
struct ForwardedHops<'a> {
    headers: &'a dyn Headers,
    header: AddressHeader,
    name: &'static str,
    fields_left: usize,
    field: &'a [u8],
}

impl<'a> ForwardedHops<'a> {
    fn new(headers: &'a dyn Headers, header: AddressHeader) -> Self {
        let name = match header {
            AddressHeader::XForwardedFor => "x-forwarded-for",
            AddressHeader::Forwarded => "forwarded",
        };
        // All field lines are counted, because the list is read from the last line. Clients can
        // forge the first lines.
        let fields_left = (0..).take_while(|index| headers.value(name, *index).is_some()).count();
        Self { headers, header, name, fields_left, field: b"" }
    }

    fn next_from_the_right(&mut self) -> Option<IpAddr> {
        let element = loop {
            while self.field.is_empty() {
                self.fields_left = self.fields_left.checked_sub(1)?;
                self.field = self.headers.value(self.name, self.fields_left)?;
            }
            let comma = match self.header {
                AddressHeader::XForwardedFor => self.field.iter().rposition(|byte| *byte == b','),
                AddressHeader::Forwarded => last_unquoted(self.field, b','),
            };
            let (before, element) = split_off(self.field, comma);
            self.field = before;
            // A list can contain empty elements, which are ignored.
            if !element.trim_ascii().is_empty() {
                break element;
            }
        };
        let node = match self.header {
            AddressHeader::XForwardedFor => element,
            AddressHeader::Forwarded => forwarded_for(element)?,
        };
        node_address(core::str::from_utf8(unquoted(node.trim_ascii())).ok()?)
    }
}

/// Returns the value of the parameter `for` in an element of the field `Forwarded`. If the element
/// has several such parameters, returns the last one, which the nearest proxy wrote. Returns `None`
/// if it has none.
fn forwarded_for(element: &[u8]) -> Option<&[u8]> {
    let mut rest = element;
    while !rest.is_empty() {
        let (before, pair) = split_off(rest, last_unquoted(rest, b';'));
        rest = before;
        let equals = pair.iter().position(|byte| *byte == b'=');
        let Some((name, value)) = equals.map(|at| (&pair[..at], &pair[at + 1..])) else { continue };
        if name.trim_ascii().eq_ignore_ascii_case(b"for") {
            return Some(value);
        }
    }
    None
}

/// Divides `field` at the separator with the index `index` into the bytes before and the bytes
/// after the separator. If `index` is `None`, returns an empty slice and the whole field.
fn split_off(field: &[u8], index: Option<usize>) -> (&[u8], &[u8]) {
    index.map_or((b"", field), |index| (&field[..index], &field[index + 1..]))
}

/// Returns the index of the last `separator` that is not inside quotes, or `None` if there is none.
///
/// The function reads from the right, in the direction in which the list is read. If a client opens
/// a quote and never closes it, the quote is to the left of the elements that proxies appended.
/// Such a quote therefore cannot include those elements.
fn last_unquoted(field: &[u8], separator: u8) -> Option<usize> {
    let mut quoted = false;
    for (index, byte) in field.iter().enumerate().rev() {
        match *byte {
            b'"' if !quoted || !is_escaped(field, index) => quoted = !quoted,
            byte if byte == separator && !quoted => return Some(index),
            _ => {}
        }
    }
    None
}

/// Returns whether an odd number of backslashes precedes `index`.
fn is_escaped(field: &[u8], index: usize) -> bool {
    field[..index].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Returns the content of a quoted string; other values are returned unchanged.
fn unquoted(value: &[u8]) -> &[u8] {
    let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    inside.unwrap_or(value)
}

/// Parses an address as proxies write it: with or without a port, IPv6 with or without brackets.
/// Returns `None` if `node` is not such an address.
fn node_address(node: &str) -> Option<IpAddr> {
    if let Ok(address) = node.parse() {
        return Some(plain(address));
    }
    if let Some(bracketed) = node.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        let port_is_fine = port.is_empty() || is_port(port.strip_prefix(':')?);
        return if port_is_fine { Some(plain(IpAddr::V6(address.parse().ok()?))) } else { None };
    }
    let (address, port) = node.split_once(':')?;
    if is_port(port) { Some(IpAddr::V4(address.parse().ok()?)) } else { None }
}

/// Returns whether the text is a port number, or an obfuscated port as RFC 7239, section 6.2,
/// defines it.
fn is_port(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(plain),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

/// Converts an IPv4-mapped IPv6 address to the IPv4 address.
pub(super) fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Returns `address` with all bits after the first `prefix` bits set to zero.
fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let keep = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & keep).into())
        }
        IpAddr::V6(v6) => {
            let keep = u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) & keep))
        }
    }
}

/// Returns the text of the client's address, such as `192.0.2.1`. If not all bits of the address
/// are significant, returns the text of its network, such as `2001:db8::/64`.
pub(super) fn network_name(address: IpAddr, ipv4_prefix: u8, ipv6_prefix: u8) -> String {
    let (prefix, bits) = match address {
        IpAddr::V4(_) => (ipv4_prefix, 32),
        IpAddr::V6(_) => (ipv6_prefix, 128),
    };
    let network = mask(address, prefix);
    if prefix >= bits { network.to_string() } else { alloc::format!("{network}/{prefix}") }
}
