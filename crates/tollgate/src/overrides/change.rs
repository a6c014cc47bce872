//! A change of one override, and why it is not made.

use std::fmt;

use tollgate_core::StoreError;

use super::{MAX_OVERRIDES, Override, OverrideScope};

/// A change of one override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideChange {
    /// This one, in the place of what was said of the same target.
    Set(Override),
    /// None of this target any more.
    Remove(OverrideScope),
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideStoreError {
    /// There are [`MAX_OVERRIDES`] already.
    Full,
    /// There is none of that target.
    Missing,
    /// Others changed them each time it was tried.
    Contended,
    /// What keeps them did not answer; it is not known whether the change was made.
    Store(StoreError),
}

impl OverrideChange {
    /// OverrideTarget and what it is about.
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
                "there are {MAX_OVERRIDES} overrides, the most that are kept: remove some, or have \
                 the policy say what is to last"
            ),
            Self::Missing => f.write_str("there is no such override: it may have ended"),
            Self::Contended => f.write_str("others change overrides all the time: ask once more"),
            Self::Store(error) => {
                write!(f, "{error}: whether the override was changed is not known; ask once more")
            }
        }
    }
}

impl std::error::Error for OverrideStoreError {}
