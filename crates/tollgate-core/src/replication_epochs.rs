//! Replication epochs of a store's state.

use crate::store::CellTransfer;
use crate::time::Millis;

/// A store with a state that can be replaced by another history that lacks the latest answered
/// charges, for example when a replica is promoted.
///
/// Each history has a number. While the current one is not [released](Self::release), charges are
/// held back: [`Store::apply`](crate::Store::apply) returns
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable) without executing anything, unless
/// the call only reads. [`CellTransfer::join`] is executed, so the state can be completed before it
/// is used for decisions.
pub trait ReplicationEpochs: CellTransfer {
    /// Returns the number of the history that receives charges now. It rises whenever another
    /// history may have begun.
    fn history(&self) -> u64;

    /// Returns whether charges are held back, because the current history is not released.
    fn holds(&self) -> bool;

    /// Returns how long the store had answered no call when the current epoch began: zero if that
    /// was not detected, and for the first epoch.
    fn outage(&self) -> Millis;

    /// Releases charges to `history`. A number older than the last one has no effect.
    fn release(&self, history: u64);
}
