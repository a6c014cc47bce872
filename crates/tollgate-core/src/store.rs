//! The interface of a store: the component that keeps the counters.

use alloc::vec::Vec;
use core::future::Future;

pub use crate::store_error::StoreError;

use crate::charge::Charge;
use crate::decide::Cell;
use crate::key::Subject;
use crate::limit::Limit;
use crate::reading::Readings;
use crate::time::Timestamp;

/// Keeps the state of limits and changes it with [`crate::decide()`].
///
/// # Contract
/// - One call is one atomic step. Its charges and reservations are all or nothing: the store checks
///   each of them against the state before the call and counts them only if all fit. Limits that
///   count refusals are the exception.
/// - No two charges of one call are on the same limit and subject; the caller sums their costs.
///   Refunds of different receipts of one subject are allowed, each with its own id: one call
///   returns all of them.
/// - The readings are in the order of the charges and from the same atomic step. The call was
///   admitted exactly if the reading of every charge and reservation fits.
/// - Peeks, refunds, renewals and resets of one call are independent of each other.
/// - Dropping the future discards the result, not the call: the store executes the call completely
///   or not at all, and the outcome is lost. Nothing else depends on polling the future to
///   completion.
/// - The caller provides `now`; the store does not read a clock to decide.
pub trait Store: Send + Sync {
    /// Executes `charges` at `now`.
    ///
    /// # Errors
    /// [`StoreError`] if the store returned no result. The charges may or may not have been
    /// counted.
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send;
}

/// A store with cells that can be exported and merged. Rebalancing moves subjects between stores
/// with it, and failover replay repairs a store from the records of other nodes.
///
/// Neither method is part of a decision. Each key is processed independently; one call is at least
/// one atomic step per key.
pub trait CellTransfer: Store {
    /// Returns the stored cells of `keys`, in their order; `None` for a key without a cell that is
    /// valid at `now`.
    ///
    /// # Errors
    /// [`StoreError`] if the store returned no result.
    fn cells(
        &self,
        now: Timestamp,
        keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// [Joins](crate::decide::join) `cells` with the stored cells of their keys.
    ///
    /// The operation is idempotent.
    ///
    /// # Errors
    /// [`StoreError`] if the store returned no result. Some cells may be joined and others not.
    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The key of a cell: a limit and a subject.
#[derive(Clone, Copy, Debug)]
pub struct CellKey<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The subject.
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
