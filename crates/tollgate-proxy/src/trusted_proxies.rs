//! The proxies whose forwarding fields are trusted.

use std::{net::IpAddr, sync::Arc};

use arc_swap::{ArcSwap, Guard};
use tollgate::model::policy::Network;

/// The networks of the proxies whose forwarding fields are trusted. Clones share the networks, and
/// a change applies to all later requests.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Arc<ArcSwap<Vec<Network>>>);

impl TrustedProxies {
    /// Replaces the trusted networks.
    pub fn set(&self, networks: Vec<Network>) {
        self.0.store(Arc::new(networks));
    }

    /// Returns whether the canonical address `address` is in one of the networks.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.load().iter().any(|network| network.contains(address))
    }

    /// Returns the current networks.
    pub(crate) fn load(&self) -> Guard<Arc<Vec<Network>>> {
        self.0.load()
    }
}

impl From<Vec<Network>> for TrustedProxies {
    fn from(networks: Vec<Network>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(networks)))
    }
}
