//! Conclusions from the error of a store call about the charges of the call.

use tollgate_core::StoreError;

/// Returns whether the store may have executed a call that failed with `error`.
pub(super) const fn may_have_run(error: StoreError) -> bool {
    // After an error of another kind, which a later version can have, nothing is certain.
    !matches!(error, StoreError::Unavailable | StoreError::Full | StoreError::NotPermitted)
}

/// Returns the error of a call that was not sent, because a call that had to come first failed with
/// `error`. The result never says that the store may have executed the call.
pub(super) const fn unsent(error: StoreError) -> StoreError {
    if may_have_run(error) { StoreError::Unavailable } else { error }
}
