//! Sets of networks, for rules that apply to some clients only.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::Network;
use super::address::plain;

/// A set of networks, which finds out in logarithmic time whether one of the networks contains an
/// address.
///
/// The networks are kept as sorted ranges of addresses that neither overlap nor touch. A range of
/// IPv4 addresses takes 8 bytes, and a range of IPv6 addresses 32.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSet {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

/// A list of networks in a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkList {
    /// The name of the list in the policy. If a rule contains the networks itself, this is the text
    /// of those networks.
    pub name: Box<str>,
    /// Whether the list has a name.
    pub is_named: bool,
    /// The networks.
    pub networks: NetworkSet,
}

impl NetworkSet {
    /// Creates a set. Networks that overlap or touch are merged.
    pub fn new(networks: impl IntoIterator<Item = Network>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            match network.range() {
                (IpAddr::V4(first), IpAddr::V4(last)) => v4.push((first.to_bits(), last.to_bits())),
                (IpAddr::V6(first), IpAddr::V6(last)) => v6.push((first.to_bits(), last.to_bits())),
                _ => {}
            }
        }
        Self {
            v4: merged(v4, |last| last.checked_add(1)),
            v6: merged(v6, |last| last.checked_add(1)),
        }
    }

    /// Returns whether one of the networks contains `address`. An IPv4-mapped IPv6 address counts
    /// as the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match plain(address) {
            IpAddr::V4(address) => is_in(&self.v4, address.to_bits()),
            IpAddr::V6(address) => is_in(&self.v6, address.to_bits()),
        }
    }

    /// Returns the number of ranges of addresses.
    #[must_use]
    pub fn ranges(&self) -> usize {
        self.v4.len() + self.v6.len()
    }
}

/// Sorts ranges of addresses and merges those that overlap or touch. An address is represented as a
/// number, and `next` returns the number after it, if there is one.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>, next: impl Fn(T) -> Option<T>) -> Box<[(T, T)]> {
    ranges.sort_unstable();
    ranges.dedup_by(|(first, last), (_, before)| {
        let joins = next(*before).is_none_or(|after| *first <= after);
        if joins {
            *before = (*before).max(*last);
        }
        joins
    });
    ranges.into_boxed_slice()
}

fn is_in<T: Ord + Copy>(ranges: &[(T, T)], number: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= number);
    after.checked_sub(1).is_some_and(|index| number <= ranges[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(networks: &[&str]) -> NetworkSet {
        NetworkSet::new(networks.iter().map(|text| Network::parse(text).unwrap()))
    }

    #[test]
    fn addresses_are_found_in_merged_ranges() {
        let set = set(&[
            "10.1.0.0/16",
            "10.0.0.0/16",
            "10.0.3.0/24",
            "192.0.2.7",
            "0.0.0.0/32",
            "255.255.255.255",
            "2001:db8::/32",
            "2001:db8:1::/48",
        ]);
        assert_eq!(set.ranges(), 5);
        for (address, expected) in [
            ("10.0.0.0", true),
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("9.255.255.255", false),
            ("192.0.2.7", true),
            ("192.0.2.6", false),
            ("192.0.2.8", false),
            ("0.0.0.0", true),
            ("0.0.0.1", false),
            ("255.255.255.255", true),
            ("::ffff:192.0.2.7", true),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            ("::1", false),
        ] {
            assert_eq!(set.contains(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_set_of_everything_and_a_set_of_nothing() {
        let all = set(&["0.0.0.0/0", "10.0.0.0/8", "::/0", "::1"]);
        assert_eq!(all.ranges(), 2);
        let none = NetworkSet::default();
        for address in ["0.0.0.0", "255.255.255.255", "::", "ff02::1"] {
            let address = address.parse().unwrap();
            assert!(all.contains(address) && !none.contains(address));
        }
    }
}
