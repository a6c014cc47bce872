//! The keys of the tables that this node keeps for single counters.

use tollgate_core::{Limit, Subject};

/// The key of a counter: the name of a limit, and a subject of this limit.
pub(super) type CounterKey = (Box<str>, Subject);

/// Returns the key of the counter of `limit` for `subject`.
pub(super) fn counter_key(limit: &Limit, subject: &Subject) -> CounterKey {
    (limit.name().into(), subject.clone())
}
