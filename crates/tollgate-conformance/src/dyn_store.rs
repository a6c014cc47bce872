//! A store of any type behind a pointer, and futures of a named type. The compiler thus compiles
//! the suite and the traces once, in this crate, instead of once for each type of store in each test
//! program.

use std::pin::Pin;

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

/// A borrowed store of any type.
#[derive(Clone, Copy)]
pub(crate) struct DynStore<'s>(&'s dyn DynApply);

/// A future of a named type. An `async fn` is compiled in each crate that calls it, and a function
/// that returns this type in its own crate.
pub(crate) type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

type Answer<'c> = BoxFuture<'c, Result<Readings, StoreError>>;

/// [`Store::apply`] with a future behind a pointer.
trait DynApply: Send + Sync {
    fn apply_boxed<'c>(&'c self, now: Timestamp, charges: &'c [Charge<'c>]) -> Answer<'c>;
}

impl<S: Store> DynApply for S {
    fn apply_boxed<'c>(&'c self, now: Timestamp, charges: &'c [Charge<'c>]) -> Answer<'c> {
        Box::pin(self.apply(now, charges))
    }
}

impl<'s> DynStore<'s> {
    pub(crate) fn new<S: Store>(store: &'s S) -> Self {
        Self(store)
    }
}

impl Store for DynStore<'_> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.0.apply_boxed(now, charges).await
    }
}
