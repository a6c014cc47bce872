//! The interface of a store: the component that keeps the counters.

use alloc::vec::Vec;
use core::future::Future;

pub use crate::store_error::StoreError;

use crate::charge::{Charge, Operation};
use crate::cost::Cost;
use crate::decide::Cell;
use crate::key::Subject;
use crate::limit::Limit;
use crate::reading::Readings;
use crate::time::Timestamp;

/// Keeps the state of limits and changes it with [`crate::decide()`].
///
/// # Contract
/// - One call is one atomic step. The store checks each charge and reservation of the call against
///   the state before the call, and counts them only if all fit. Only limits that count refusals
///   also count charges of a refused call.
/// - No two charges of one call are on the same limit and subject; the caller sums their costs. One
///   call can contain several refunds for one subject if they belong to different receipts and each
///   has its own id.
/// - The readings are in the order of the charges and from the same atomic step. The call was
///   admitted if and only if the admission of every charge's and reservation's reading is
///   [`Now`](crate::Admission::Now).
/// - Peeks, refunds, renewals and resets of one call are independent of each other.
/// - Dropping the future discards the result and does not cancel the call. The store executes the
///   call completely or not at all, and the caller does not receive the outcome. The state of the
///   store does not depend on whether the future is polled to completion.
/// - The caller provides `now`; the store does not read a clock to decide.
pub trait Store: Send + Sync {
    /// Executes the operations in `charges` at the time `now`, as one atomic step. Returns one
    /// reading for each charge.
    ///
    /// # Errors
    /// [`StoreError`] if the store returned no result. Unless the error states that nothing was
    /// charged, it is unknown whether the charges were counted.
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send;

    /// Executes the operations like [`apply`](Self::apply), without a future. Returns `None`, and
    /// executes nothing, if this store cannot answer at once. This is the default.
    ///
    /// A store whose counters are in the memory of this process can implement this method. The
    /// readings must not come from a fallback, because callers do not undo charges of this method.
    ///
    /// # Errors
    /// [`StoreError`] under the same conditions as [`apply`](Self::apply).
    fn apply_at_once(
        &self,
        _now: Timestamp,
        _charges: &[Charge<'_>],
    ) -> Option<Result<Readings, StoreError>> {
        None
    }
}

/// A store that can export and merge its [`Cell`]s. A cell is the state of a limit for a subject.
/// Rebalancing uses this trait to move subjects between stores. Failover replay uses it to repair a
/// store from the charges that nodes remember.
///
/// Neither method is part of a decision. A store processes each key independently, in one or more
/// atomic steps. A call with several keys is therefore not one atomic step.
pub trait CellTransfer: Store {
    /// Returns the stored cells of `keys`, in the order of `keys`. The result for a key is `None`
    /// if no cell is stored for the key, or if the cell is not valid at `now`.
    ///
    /// # Errors
    /// [`StoreError`] if the store returned no result.
    fn cells(
        &self,
        now: Timestamp,
        keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send;

    /// [Joins](crate::decide::join) each of `cells` with the stored cell of its key.
    ///
    /// The operation is idempotent.
    ///
    /// # Errors
    /// [`StoreError`] if the store returned no result. In that case, some of the cells may already
    /// be joined.
    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The key of a cell: a limit and a subject.
#[derive(Clone, Copy, Debug)]
pub struct CellKey<'a> {
    /// The limit to which the cell belongs.
    pub limit: &'a Limit,
    /// The subject to which the cell belongs.
    pub subject: &'a Subject,
}

impl<'a> CellKey<'a> {
    /// Returns a peek of this limit and subject, which reads the status.
    #[must_use]
    pub const fn peek(&self) -> Charge<'a> {
        let operation = Operation::Peek { cost: Cost::PEEK };
        Charge { limit: self.limit, subject: self.subject, operation }
    }
}

impl<S: Store> Store for &S {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        (**self).apply(now, charges)
    }

    fn apply_at_once(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Option<Result<Readings, StoreError>> {
        (**self).apply_at_once(now, charges)
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

    fn apply_at_once(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Option<Result<Readings, StoreError>> {
        (**self).apply_at_once(now, charges)
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
