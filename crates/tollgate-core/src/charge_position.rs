//! The position of a charge.

/// The position of a charge: the window, block, bucket or time, as the algorithm numbers them.
///
/// Only the step that created it can interpret it. A refund contains it, so the units are returned
/// to the position that they were charged on, or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargePosition(pub u64);
