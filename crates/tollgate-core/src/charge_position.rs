//! Where a charge was put.

/// Where a charge was put: the window, block, bucket or moment, as the algorithm numbers them.
///
/// Only the step that made it can read it; a refund brings it back so that what is given back goes
/// to where it was taken from, or nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargePosition(pub u64);
