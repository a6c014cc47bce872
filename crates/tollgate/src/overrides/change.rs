//! A change of one override, and the reasons why a change fails.

use std::fmt;

use tollgate_core::StoreError;

use super::{MAX_OVERRIDES, Override, OverrideScope};

/// A change of the overrides: sets or removes one override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideChange {
    /// Sets this override, and replaces an earlier override of the same scope.
    Set(Override),
    /// Removes the override of this scope.
    Remove(OverrideScope),
}

/// The reason why the change of an override was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideStoreError {
    /// [`MAX_OVERRIDES`] overrides are in force already.
    Full,
    /// There is no override of this scope to remove.
    Missing,
    /// Every attempt failed, because another node changed the overrides at the same time.
    Contended,
    /// The store cannot be used. The change may have been made or not.
    Store(StoreError),
    /// The store does not answer, so this node must keep the change for the store. The node already
    /// keeps the largest number of such changes.
    LocalFull {
        /// The number of changes that this node keeps for the store.
        changes: usize,
    },
}

impl OverrideChange {
    /// Returns the scope of the override to set or to remove.
    #[must_use]
    pub const fn target(&self) -> &OverrideScope {
        match self {
            Self::Set(one) => &one.target,
            Self::Remove(target) => target,
        }
    }
}

impl fmt::Display for OverrideStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(
                f,
                "there are {MAX_OVERRIDES} overrides, the maximum: remove some, or write \
                 permanent limits into the policy"
            ),
            Self::Missing => f.write_str("there is no such override: it may have expired"),
            Self::Contended => {
                f.write_str("other changes of overrides came first at every attempt: try again")
            }
            Self::LocalFull { changes } => write!(
                f,
                "the store does not answer, and this node already keeps {changes} changes for it: \
                 change an override that it keeps, or try again when the store answers"
            ),
            Self::Store(error) => {
                write!(
                    f,
                    "{error}: it is unknown whether the override was changed; send the change again"
                )
            }
        }
    }
}

impl std::error::Error for OverrideStoreError {}
