//! The client's address, behind proxies that are named and no others.
//!
//! Source: RFC 7239 (`Forwarded`) and the de facto `X-Forwarded-For`. Both are lists to which each
//! proxy appends the address it saw, so they are read from the right and only as far as the
//! addresses are those of trusted proxies: what stands left of the first stranger anyone can write.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use crate::attributes::{Headers, RequestAttributes};

/// The most forwarding steps that are followed.
pub const MAX_HOPS: usize = 32;

/// Which header the trusted proxies write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// Which proxies are believed about whom they forward for. By default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// The networks of the proxies.
    pub trusted: Vec<Network>,
    /// Which header they write.
    pub header: AddressHeader,
    /// The most proxies that can stand between a client and this node, at most [`MAX_HOPS`].
    pub hops: Option<usize>,
}

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why a text names no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// Not an address, or an address and a prefix.
    Syntax,
    /// More leading bits than the address has.
    Prefix,
    /// An IPv4 address written in IPv6 with a prefix below 96, which would take in all of IPv4.
    Mapped,
    /// Bits are set behind the prefix: it is not clear which network is meant.
    HostBits,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "a network is an address such as 10.0.0.1, or 10.0.0.0/8",
            Self::Prefix => "the prefix is longer than the address",
            Self::Mapped => "an IPv4 network is written as such: 10.0.0.0/8",
            Self::HostBits => "bits are set behind the prefix: which network is meant?",
        })
    }
}

impl core::error::Error for NetworkError {}

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or a single address.
    ///
    /// # Errors
    /// [`NetworkError`], which says what is wrong.
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

    /// How many leading bits count.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether it is one of IPv4.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// The network of `prefix` leading bits that this one is a part of; `None` if it is wider.
    #[must_use]
    pub fn within(&self, prefix: u8) -> Option<Self> {
        (prefix <= self.prefix).then(|| Self { address: mask(self.address, prefix), prefix })
    }

    /// Whether `address` lies in the network.
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
    /// The client's address: the peer's, or the nearest that trusted proxies tell of.
    #[must_use]
    pub fn client(&self, attributes: &RequestAttributes<'_>) -> Option<IpAddr> {
        let mut nearest = plain(attributes.peer?);
        let hops = self.hops.unwrap_or(MAX_HOPS).min(MAX_HOPS);
        let mut told = ForwardedHops::new(attributes.headers, self.header);
        for _ in 0..hops {
            if !self.trusted.iter().any(|network| network.contains(nearest)) {
                break;
            }
            // What is no address ends the trail at the last proxy that is known.
            let Some(address) = told.next_from_the_right() else { break };
            nearest = address;
        }
        Some(nearest)
    }
}

/// The addresses that the headers tell of, from the last one on.
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
        // Lines beyond what could be followed are written by strangers.
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
            // A list may have empty elements; they say nothing.
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

/// The value of `for` in an element of `Forwarded`; of several the last, which is the nearest.
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

/// What stands before and after the byte at `index`; nothing and all of it if there is none.
fn split_off(field: &[u8], index: Option<usize>) -> (&[u8], &[u8]) {
    index.map_or((b"", field), |index| (&field[..index], &field[index + 1..]))
}

/// The last `separator` that is not inside quotes.
///
/// Read from the right, like the list itself: a quote that a stranger opens and never closes stands
/// to the left of what the proxies wrote, and cannot take it in.
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

/// Whether an odd number of backslashes stands before `index`.
fn is_escaped(field: &[u8], index: usize) -> bool {
    field[..index].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The inside of a quoted string; what is not one as it is.
fn unquoted(value: &[u8]) -> &[u8] {
    let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    inside.unwrap_or(value)
}

/// An address as proxies write it: with a port or without, IPv6 in brackets or without.
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

/// A port number, or a name that stands for one (RFC 7239, section 6.2).
fn is_port(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(plain),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

/// An IPv4 address that came in IPv6's clothes is that IPv4 address.
pub(super) fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// `address` with all but its `prefix` leading bits zero.
pub(super) fn mask(address: IpAddr, prefix: u8) -> IpAddr {
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
