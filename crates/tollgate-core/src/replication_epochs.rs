//! What a store remembers may begin to come from another history than before.

use crate::store::CellTransfer;
use crate::time::Millis;

/// A store whose state may be replaced by another course of events, one that lacks the end of what
/// was answered: as when a replica takes over from a primary.
///
/// Each history has a number. While the history in force is not [released](Self::release), charges
/// are held: [`Store::apply`](crate::Store::apply) answers
/// [`StoreError::Unavailable`](crate::StoreError::Unavailable) and has carried out nothing, unless
/// the call only reads. [`CellTransfer::join`] goes ahead, and so the state can be made whole before
/// anything is decided on it.
pub trait ReplicationEpochs: CellTransfer {
    /// The number of the history that charges would go to now: it rises whenever another one may
    /// have begun.
    fn history(&self) -> u64;

    /// Whether charges are held now, because the history in force is not released.
    fn holds(&self) -> bool;

    /// For how long nothing had been answered when the history in force began: zero where nobody
    /// noticed, and for the first one.
    fn outage(&self) -> Millis;

    /// Charges may go to `history`. An older number than the last one changes nothing.
    fn release(&self, history: u64);
}
