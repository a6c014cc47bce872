//! Replication epochs of a store's state.

use crate::store::CellTransfer;
use crate::time::Millis;

/// A store that can lose its most recent charges and continue with an older state, for example when
/// a replica is promoted. The older state begins a new replication epoch.
///
/// Each epoch has a number. A new epoch executes no charges until [`release`](Self::release) is
/// called with its number. Until then, [`Store::apply`](crate::Store::apply) executes only calls
/// that read. For other calls it returns
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable) and executes nothing.
/// [`CellTransfer::join`] is executed before the release too, so nodes can add the lost charges to
/// the state before it is used for decisions.
pub trait ReplicationEpochs: CellTransfer {
    /// Returns the number of the current epoch. A higher number means that another epoch has begun
    /// or might have begun.
    fn epoch(&self) -> u64;

    /// Returns whether the store refuses charges now, because [`release`](Self::release) was not
    /// called for the current epoch.
    fn holds(&self) -> bool;

    /// Returns the time since the store stopped to execute calls, before the current epoch began.
    /// The duration is zero for the first epoch, and if no outage was detected.
    fn outage(&self) -> Millis;

    /// Lets the store execute charges in the epoch with the number `epoch`. A number lower than
    /// that of an earlier call has no effect.
    fn release(&self, epoch: u64);
}
