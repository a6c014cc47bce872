use std::net::{IpAddr, Ipv4Addr};

/// The key under which a client address is counted, for example its connections. The key is an IPv4
/// address or a /64 subnet of IPv6, which is the smallest subnet that a network assigns to a
/// customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressKey(Key);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    V4(Ipv4Addr),
    V6Subnet(u64),
}

impl AddressKey {
    /// Returns the key of a canonical address, which is never an IPv4-mapped IPv6 address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(address) => Key::V4(address),
            IpAddr::V6(address) => Key::V6Subnet((address.to_bits() >> 64) as u64),
        })
    }
}
