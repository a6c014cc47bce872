//! Lists the subjects that keys contain in clear text. Each call scans some of the keys.

use std::fmt;

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, timeout_at};
use tollgate_core::{Limit, StoreError, Subject};

use crate::key::Keys;
use crate::link::{Link, Phase};

/// The number of keys that a server scans in one call of a listing. One call blocks the server for
/// a fraction of a millisecond.
pub const KEYS_PER_LIST_STEP: usize = 500;

/// Selects the keys to list.
#[derive(Clone, Copy, Debug)]
pub struct ListFilter<'s> {
    /// The limit of the keys that are listed.
    pub limit: &'s Limit,
    /// The first name in the subjects that are listed, such as `user`.
    pub dimension: &'s str,
    /// The prefix of the value of `dimension`. An empty prefix selects all subjects.
    pub prefix: &'s [u8],
}

/// The result of one call of a listing.
#[derive(Debug)]
pub struct ListPage {
    /// The subjects that were found. While the server resizes its key table, a subject may be found
    /// repeatedly.
    pub subjects: Vec<Subject>,
    /// The cursor for the next call. `None` at the end of the listing.
    pub next: Option<u64>,
}

/// The reason why a call of a listing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListError {
    /// The server's access rules do not permit the user to list keys.
    NotPermitted,
    /// The server cannot be reached, or did not answer in time.
    Store(StoreError),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted => f.write_str(
                "the server's user may not list keys: grant it `+scan`, by which it can read the \
                 names of all keys there",
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotPermitted => None,
            Self::Store(error) => Some(error),
        }
    }
}

/// Scans some keys of the server that `link` is connected to. The scan starts at `cursor`. The
/// cursor 0 selects the beginning. Waits for the server's answer until `until` at most.
pub(crate) async fn list(
    link: &Link,
    keys: &Keys,
    filter: ListFilter<'_>,
    cursor: u64,
    until: Instant,
) -> Result<ListPage, ListError> {
    let ListFilter { limit, dimension, prefix } = filter;
    let mut command = redis::cmd("SCAN");
    command.arg(cursor).arg("MATCH").arg(keys.pattern(limit, (dimension, prefix)));
    command.arg("COUNT").arg(KEYS_PER_LIST_STEP);
    let mut connection: MultiplexedConnection = match &*link.phases().borrow() {
        Phase::Up(connection) if link.permits(connection) => connection.handle(),
        Phase::Up(_) | Phase::Connecting | Phase::Down => {
            return Err(ListError::Store(StoreError::Unavailable));
        }
    };
    let answered = timeout_at(until, command.query_async(&mut connection)).await;
    let (next, names): (u64, Vec<Vec<u8>>) = answered
        .map_err(|_| ListError::Store(StoreError::TimedOut))?
        .map_err(|error: RedisError| match error.code() {
            Some("NOPERM") => ListError::NotPermitted,
            _ => ListError::Store(StoreError::Unavailable),
        })?;
    let subjects = names.iter().filter_map(|name| keys.revealed_subject(name)).collect();
    Ok(ListPage { subjects, next: (next != 0).then_some(next) })
}
