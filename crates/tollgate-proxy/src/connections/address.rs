use std::net::{IpAddr, Ipv4Addr};

/// The addresses whose connections are counted together: an IPv4 address, or a /64 subnet of IPv6, which is what one
/// customer of a network has at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AddressKey {
    V4(Ipv4Addr),
    V6Subnet(u64),
}

impl AddressKey {
    /// The key of a canonical address: an IPv4 address that is mapped to IPv6 is none.
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6Subnet((address.to_bits() >> 64) as u64),
        }
    }
}
