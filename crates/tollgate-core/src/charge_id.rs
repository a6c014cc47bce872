//! The ids of charges.

/// The id of one admitted request. The caller chooses the id, which is unique over all nodes.
///
/// The id identifies the permit of the request in a concurrency limit. It also lets a store
/// recognize a repeated refund.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChargeId(pub u128);
