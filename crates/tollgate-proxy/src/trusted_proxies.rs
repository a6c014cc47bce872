//! Whose word counts about the client's address.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tollgate::core::policy::Network;

/// The networks of the proxies that are believed. Clones are the same: what one of them is set to
/// counts for requests that come from then on.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Arc<ArcSwap<Vec<Network>>>);

impl TrustedProxies {
    /// Believes these and no others.
    pub fn set(&self, networks: Vec<Network>) {
        self.0.store(Arc::new(networks));
    }

    /// Who is believed now.
    pub(crate) fn load(&self) -> Guard<Arc<Vec<Network>>> {
        self.0.load()
    }
}

impl From<Vec<Network>> for TrustedProxies {
    fn from(networks: Vec<Network>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(networks)))
    }
}
