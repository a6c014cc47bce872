//! Converts the keys `trusted_proxies` and `forwarded` to the settings of trusted proxies.

use tollgate_core::policy::address::MAX_HOPS;
use tollgate_core::policy::{Forwarding, Network};

use crate::decode::{OneOrMore, quoted};
use crate::raw::PolicyFile;
use crate::report::Report;

/// Returns the settings of trusted proxies, or `None` after reporting a mistake.
pub(super) fn forwarding(file: &PolicyFile, report: &mut Report<'_>) -> Option<Forwarding> {
    let mut forwarding = Forwarding::default();
    let networks = file.trusted_proxies.value().map_or(&[][..], |OneOrMore(given)| given);
    for given in networks {
        match Network::parse(&given.value.0) {
            Ok(network) if network.prefix() == 0 => {
                let message = format_args!("{} trusts every client", quoted(&given.value.0));
                let hint =
                    "each of them could choose its address: name the networks of your proxies";
                report.error(given.at, message, hint);
            }
            Ok(network) => forwarding.trusted.push(network),
            Err(error) => {
                let message = format_args!("{} is not a network", quoted(&given.value.0));
                report.error(given.at, message, error);
            }
        }
    }
    let Some(forwarded) = file.forwarded.given() else { return Some(forwarding) };
    if file.trusted_proxies.is_absent() {
        let hint =
            "the header is ignored without `trusted_proxies`, because any client can send it";
        report.warning(forwarded.key, "`forwarded` does nothing", hint);
    }
    if let Some(header) = forwarded.value.header.value() {
        forwarding.header = header.0;
    }
    if let Some(hops) = forwarded.value.hops.given() {
        let most = usize::try_from(hops.value.0).ok().filter(|hops| (1..=MAX_HOPS).contains(hops));
        if most.is_none() {
            let message = format_args!("invalid number of proxies {}", hops.value.0);
            report.error(hops.at, message, format_args!("expected 1 to {MAX_HOPS}"));
        }
        forwarding.hops = most;
    }
    Some(forwarding)
}
