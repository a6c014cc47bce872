//! Lists the subjects of a limit that are revealed by the names of keys.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio::time::Instant;
use tollgate::model::Subject;
use tollgate_redis::{ListError, ListFilter, ListPage};

use crate::backend::Backend;
use crate::shards::Shard;

/// The most scans of one call of [`Backend::subjects`]. Each scan examines about 500 keys of one
/// server ([`KEYS_PER_LIST_STEP`](tollgate_redis::KEYS_PER_LIST_STEP)).
pub const LIST_STEPS: usize = 20;

/// The number of found subjects after which a call of [`Backend::subjects`] ends.
pub const LISTED_SUBJECTS: usize = 100;

/// The longest time for one call of [`Backend::subjects`].
pub const LIST_DEADLINE: Duration = Duration::from_secs(2);

/// The position of a listing: a shard, one of its primaries, and the cursor at that primary. The
/// text form of a position consists of the three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCursor {
    shard: usize,
    primary: usize,
    cursor: u64,
}

/// The result of one call of [`Backend::subjects`].
#[derive(Debug, Default)]
pub struct ListedPage {
    /// The subjects that were found. The same subject occurs once on a page, but may occur again on
    /// another page.
    pub subjects: Vec<Subject>,
    /// The position from which the next call continues. `None` at the end of the listing.
    pub next: Option<ListCursor>,
}

impl Backend {
    /// Returns some of the subjects that match `filter`. The listing continues at `at` and scans a
    /// bounded number of keys, so there may be more subjects after an empty page. Returns `None` if
    /// a store that decides does not reveal subjects. Only the keys in Redis reveal subjects.
    ///
    /// # Errors
    /// [`ListError`] of the first shard of the page, if this shard did not answer or does not
    /// permit the scan. If a later shard has an error, the page ends before this shard.
    pub async fn subjects(
        &self,
        filter: ListFilter<'_>,
        at: ListCursor,
    ) -> Option<Result<ListedPage, ListError>> {
        let mut shards = Vec::new();
        for store in self.deciding() {
            let Self::Redis(redis) = store else { return None };
            shards.extend(redis.shards().shards());
        }
        Some(list_shards(&shards, filter, at).await)
    }
}

async fn list_shards(
    shards: &[&Shard],
    filter: ListFilter<'_>,
    at: ListCursor,
) -> Result<ListedPage, ListError> {
    let until = Instant::now() + LIST_DEADLINE;
    let scan = |at: ListCursor| {
        let servers = shards[at.shard].store.servers();
        servers.list(at.primary, filter, at.cursor, until)
    };
    list_page(shards.len(), at, scan).await
}

/// Lists the subjects of `shards` shards. `scan` scans some keys at a position, and returns `None`
/// if the shard has no such primary.
async fn list_page<F: Future<Output = Option<Result<ListPage, ListError>>>>(
    shards: usize,
    mut at: ListCursor,
    mut scan: impl FnMut(ListCursor) -> F,
) -> Result<ListedPage, ListError> {
    let mut subjects = HashSet::new();
    for taken in 0..LIST_STEPS {
        if at.shard >= shards {
            break;
        }
        at = match scan(at).await {
            None => ListCursor { shard: at.shard + 1, ..ListCursor::default() },
            // Return the subjects that were found. The next page starts at the failed shard.
            Some(Err(_)) if taken > 0 => break,
            Some(listed) => {
                let ListPage { subjects: found, next } = listed?;
                subjects.extend(found);
                match next {
                    Some(cursor) => ListCursor { cursor, ..at },
                    None => ListCursor { primary: at.primary + 1, cursor: 0, ..at },
                }
            }
        };
        if subjects.len() >= LISTED_SUBJECTS {
            break;
        }
    }
    let mut subjects: Vec<_> = subjects.into_iter().collect();
    subjects.sort_unstable();
    Ok(ListedPage { subjects, next: (at.shard < shards).then_some(at) })
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.shard, self.primary, self.cursor)
    }
}

/// The error for a text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursorError;

impl FromStr for ListCursor {
    type Err = ListCursorError;

    fn from_str(text: &str) -> Result<Self, ListCursorError> {
        let mut parts = text.split('.');
        let mut part = || parts.next().ok_or(ListCursorError);
        let number = |text: &str| text.parse().map_err(|_| ListCursorError);
        let (shard, primary) = (number(part()?)?, number(part()?)?);
        let cursor = part()?.parse().map_err(|_| ListCursorError)?;
        match parts.next() {
            None => Ok(Self { shard, primary, cursor }),
            Some(_) => Err(ListCursorError),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    /// None of the scanned keys belongs to the limit.
    #[tokio::test]
    async fn a_page_ends_after_a_bounded_number_of_scans_and_the_next_one_continues() {
        const SCANS: u64 = 30;
        let mut scans = 0;
        let mut scan = |at: ListCursor| {
            scans += 1;
            let next = Some(at.cursor + 1).filter(|next| *next < SCANS);
            ready((at.primary == 0).then_some(Ok(ListPage { subjects: Vec::new(), next })))
        };
        let page = list_page(1, ListCursor::default(), &mut scan).await.unwrap();
        let next = ListCursor { cursor: 20, ..ListCursor::default() };
        assert_eq!((page.subjects.len(), page.next), (0, Some(next)));
        assert_eq!(list_page(1, next, &mut scan).await.unwrap().next, None);
        assert_eq!(scans, SCANS + 1, "and one after the last primary");
    }

    #[test]
    fn a_cursor_is_read_as_it_is_shown() {
        let cursor = ListCursor { shard: 3, primary: 1, cursor: u64::MAX };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in
            ["", "1", "1.2", "1.2.", "1.2.3.4", "-1.0.0", "a.b.c", "0.0.18446744073709551616"]
        {
            assert_eq!(text.parse::<ListCursor>(), Err(ListCursorError), "{text}");
        }
    }
}
