use std::net::{IpAddr, Ipv4Addr};

/// The key under which the connections of an address are counted. The key is an IPv4 address or a
/// /64 subnet of IPv6, which is the smallest subnet that a network assigns to a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AddressKey {
    V4(Ipv4Addr),
    V6Subnet(u64),
}

impl AddressKey {
    /// Returns the key of a canonical address, which is never an IPv4-mapped IPv6 address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6Subnet((address.to_bits() >> 64) as u64),
        }
    }
}
