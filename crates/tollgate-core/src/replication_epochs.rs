//! Replication epochs of a store's state.

use crate::store::CellTransfer;
use crate::time::Millis;

/// A store that can lose the latest answered charges and continue with an older state, for example
/// when a replica is promoted. The continued state is another replication epoch, also called a
/// history.
///
/// Each history has a number. A new history executes no charges until [`release`](Self::release) is
/// called with its number. Until then, [`Store::apply`](crate::Store::apply) returns
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable) without executing anything, unless
/// the call only reads. [`CellTransfer::join`] is executed in this time, so nodes can add the lost
/// charges to the state before it is used for decisions.
pub trait ReplicationEpochs: CellTransfer {
    /// Returns the number of the current history. The number rises whenever another history has
    /// begun or might have begun.
    fn history(&self) -> u64;

    /// Returns whether charges are refused now because [`release`](Self::release) was not called
    /// for the current history.
    fn holds(&self) -> bool;

    /// Returns the time for which the store had answered no call when the current history began.
    /// The time is zero for the first history, and if no such time was detected.
    fn outage(&self) -> Millis;

    /// Lets the store execute charges on `history`. A number older than the last one has no effect.
    fn release(&self, history: u64);
}
