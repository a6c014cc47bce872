//! The ids of charges.

/// The id of one admitted request: unique over all nodes, chosen by the caller.
///
/// It identifies the permit in a concurrency limit, and a refund that is repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChargeId(pub u128);
