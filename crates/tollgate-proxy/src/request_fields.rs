//! The header fields of requests that the policy reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

/// The names of the header fields that the policy reads from requests, in lower case. Clones share
/// the names, and a change applies to all later requests.
///
/// The proxy does not forward a field if its name is one of these names with `_` in place of `-`.
/// Services that treat both characters as the same, as CGI does, would read the value of such a
/// field, which the limiter did not read.
#[derive(Clone, Debug, Default)]
pub struct RequestFields(Arc<ArcSwap<BTreeSet<Box<str>>>>);

impl RequestFields {
    /// Replaces the names of the fields.
    pub fn set(&self, names: BTreeSet<Box<str>>) {
        self.0.store(Arc::new(names));
    }

    /// Returns the current names.
    pub(crate) fn load(&self) -> Guard<Arc<BTreeSet<Box<str>>>> {
        self.0.load()
    }
}
