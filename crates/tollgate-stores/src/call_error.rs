//! What the error of a store call says about the call's charges.

use tollgate_core::StoreError;

/// Returns whether the store may have executed a call that failed with `error`.
pub(super) const fn may_have_run(error: StoreError) -> bool {
    // After an error of another kind, which a later version can have, nothing is certain.
    !matches!(error, StoreError::Unavailable | StoreError::Full | StoreError::NotPermitted)
}
