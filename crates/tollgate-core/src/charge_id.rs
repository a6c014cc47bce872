//! The ids of charges.

/// The id of one admitted request: unique over all nodes, chosen by the caller.
///
/// It names the lease in a concurrency limit, and lets a repeated refund be recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChargeId(pub u128);
