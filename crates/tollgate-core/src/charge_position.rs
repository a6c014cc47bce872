//! The position of a charge.

/// The position of a charge: the number or time of the window, block or bucket in which an
/// algorithm counted the charge.
///
/// Only the algorithm that created a position can interpret it. A refund contains the position of
/// its charge. The units are therefore returned to the window, block or bucket that they were
/// charged on, or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargePosition(pub u64);
