//! The ids of charges.

/// The id of the charges of one request. The program that creates the charges also creates the id,
/// which must be unique over all nodes.
///
/// The id identifies the permit of the request in a concurrency limit. It also lets a store
/// recognize a repeated refund.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChargeId(pub u128);
