//! Who keeps the overrides that a node holds.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate_core::{StoreError, Timestamp};

use super::index::Overrides;
use super::table::Table;
use super::{MAX_OVERRIDES, Override, Target};

/// Keeps overrides, and makes them known to every node that shares them.
pub trait Keep: fmt::Debug + Send + Sync {
    /// Makes `change`. Once it has answered the change is in force on this node, and kept where
    /// other nodes find it.
    fn change(
        &self,
        now: Timestamp,
        change: Change,
    ) -> Pin<Box<dyn Future<Output = Result<Changed, KeepError>> + Send + '_>>;

    /// The table that is in force on this node.
    fn table(&self) -> Arc<Table>;

    /// Where overrides are kept, and how that stands.
    fn kept(&self) -> Kept;
}

/// A change of one override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This one, in the place of what was said of the same target.
    Set(Override),
    /// None of this target any more.
    Remove(Target),
}

/// What a change made.
#[derive(Clone, Debug)]
pub struct Changed {
    /// What was in force of the same target.
    pub before: Option<Arc<Override>>,
    /// What is in force now.
    pub table: Arc<Table>,
}

/// Where overrides are kept, and how that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In this process: they end with it, and other nodes know nothing of them.
    InProcess,
    /// In the store, where every node finds them.
    InStore {
        /// Why they could not be read the last time, if so; the last ones that were read stay in
        /// force.
        failure: Option<String>,
    },
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepError {
    /// There are [`MAX_OVERRIDES`] already.
    Full,
    /// There is none of that target.
    Missing,
    /// Others changed them each time it was tried.
    Contended,
    /// What keeps them did not answer; it is not known whether the change was made.
    Store(StoreError),
}

impl Change {
    /// Whom and what it is about.
    #[must_use]
    pub const fn target(&self) -> &Target {
        match self {
            Self::Set(one) => &one.target,
            Self::Remove(target) => target,
        }
    }
}

impl fmt::Display for KeepError {
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

impl std::error::Error for KeepError {}

/// In this process.
impl Keep for Arc<Overrides> {
    fn change(
        &self,
        now: Timestamp,
        change: Change,
    ) -> Pin<Box<dyn Future<Output = Result<Changed, KeepError>> + Send + '_>> {
        Box::pin(async move {
            self.update(|table| {
                let before = table.get(change.target(), now).cloned();
                let table = Arc::new(table.changed(&change, now)?);
                Ok((Changed { before, table: Arc::clone(&table) }, table))
            })
        })
    }

    fn table(&self) -> Arc<Table> {
        Overrides::table(self)
    }

    fn kept(&self) -> Kept {
        Kept::InProcess
    }
}
