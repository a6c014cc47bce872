//! The port: whatever remembers.

use alloc::vec::Vec;
use core::future::Future;

pub use crate::store_error::StoreError;

use crate::charge::Charge;
use crate::decide::Cell;
use crate::key::Subject;
use crate::limit::Limit;
use crate::reading::Readings;
use crate::time::Timestamp;

/// Remembers how limits stand, and changes them by [`crate::decide()`].
///
/// # Contract
/// - One call is one atomic step. Its takes are all or nothing: each is judged on the state before
///   the call, and only if all fit is any counted (limits that count refusals apart).
/// - No two charges of one call are on the same limit and subject; the caller adds their costs up.
///   Refunds to different keys of one are, each with an id of its own: one call gives all back.
/// - The readings are in the order of the charges and from that same step. The call was admitted
///   exactly if every take's reading fits.
/// - Looks, refunds, renewals and forgettings of one call stand each for itself.
/// - Dropping the future gives the answer up, not the call: it is carried out whole or not at all,
///   and nobody hears which. Nothing else depends on the future being polled to its end.
/// - `now` is the caller's; the store reads no clock to decide.
pub trait Store: Send + Sync {
    /// Carries out `charges` at `now`.
    ///
    /// # Errors
    /// [`StoreError`] if the store could not say; then nothing is known to have been charged.
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send;
}

/// A store whose cells can be read out and taken in: what moving a subject from one store to
/// another, and repairing one from what others know of it, are made of.
///
/// Neither is part of a decision. Each place is handled by itself; one call is at least one atomic
/// step a place.
pub trait CellTransfer: Store {
    /// The cells that are kept for `keys`, in their order; `None` where there is none that
    /// counts at `now`.
    ///
    /// # Errors
    /// [`StoreError`] if the store could not say.
    fn cells(
        &self,
        now: Timestamp,
        keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// [Joins](crate::decide::join) `cells` with what is kept for their keys.
    ///
    /// Repeating it changes nothing more.
    ///
    /// # Errors
    /// [`StoreError`] if the store could not say; then some may have been joined and others not.
    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Where a cell is kept: a limit and a subject.
#[derive(Clone, Copy, Debug)]
pub struct CellKey<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// Who is limited.
    pub subject: &'a Subject,
}

impl<S: Store> Store for &S {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        (**self).apply(now, charges)
    }
}

impl<S: Store> Store for alloc::sync::Arc<S> {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        (**self).apply(now, charges)
    }
}

impl<S: CellTransfer> CellTransfer for &S {
    fn cells(
        &self,
        now: Timestamp,
        keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        (**self).cells(now, keys)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).join(now, cells)
    }
}

impl<S: CellTransfer> CellTransfer for alloc::sync::Arc<S> {
    fn cells(
        &self,
        now: Timestamp,
        keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        (**self).cells(now, keys)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).join(now, cells)
    }
}
