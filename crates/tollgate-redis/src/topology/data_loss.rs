//! Whether a shard still has what was counted in it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Value;
use tokio::time::{Instant, timeout};

use crate::info::Info;
use crate::link::{Connection, Replication};

/// The key that is lost only with the others. No limit's key has this form.
const GENERATION: &str = "tg1:{generation}";

/// The key that is lost only with the others of a node that keeps the slot of `tag`.
pub(crate) fn generation_at(tag: &str) -> String {
    format!("tg1:generation{{{tag}}}")
}

/// How long the key lives that no node renews, and how often a node renews it that looks at it.
const GENERATION_LIVES: Duration = Duration::from_secs(30 * 24 * 3600);
const RENEW_AFTER: Duration = Duration::from_secs(600);

/// Why counters of a shard are gone: their windows began anew, in part or all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataLoss {
    /// All keys were deleted, as `FLUSHALL` does.
    Flushed,
    /// The primary began without the data that there was: it was restarted, or is another server.
    Restarted,
    /// The primary began with older data, as a restart from a snapshot does.
    Older,
    /// The server that took over lacks the end of what the old primary had written.
    FailedOver {
        /// How much of it, in bytes of the stream to replicas, at the least.
        bytes: u64,
    },
    /// The primary dropped keys for want of memory: each may have been a counter in force.
    Evicted {
        /// How many, of whoever uses the server.
        keys: u64,
    },
}

/// Watches over the primary's data.
///
/// A random value is kept in the shard, and renewed. It is gone or another one if the others are
/// gone as well; and how far the data goes, the primary tells by the name of its history and its
/// place in it. Which keys it dropped for want of memory it does not tell, but how many. Each node
/// sees for itself what happens from its own start on.
#[derive(Debug, Default)]
pub(crate) struct DataLossMonitor(Mutex<KnownState>);

#[derive(Debug, Default)]
struct KnownState {
    /// Where the generation is kept, if not at [`GENERATION`].
    key: Option<Arc<str>>,
    /// Whether a generation is neither made nor renewed.
    only_looks: bool,
    generation: Option<Box<[u8]>>,
    history: Option<(Box<str>, u64)>,
    renewed: Option<Instant>,
    /// How many keys the primary has dropped for want of memory.
    evicted: Option<u64>,
    count: u64,
    last: Option<DataLoss>,
}

/// What was found at the generation's key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Unreadable,
    Missing,
    Value(Box<[u8]>),
}

impl DataLossMonitor {
    /// Keeps the generation at `key` from now on: one that the server keeps.
    pub(crate) fn keep_at(&self, key: String) {
        let known = &mut *self.0.lock();
        if known.key.as_deref() != Some(&*key) {
            known.key = Some(key.into());
            known.generation = None;
            known.renewed = None;
        }
    }

    /// Writes nothing from now on: a generation that others make is seen, and none made.
    pub(crate) fn set_read_only(&self) {
        self.0.lock().only_looks = true;
    }

    /// Looks whether the primary at the end of `connection`, which told `server_report` of itself, still has
    /// what it had. Waits for it `within` that time; what it does not answer tells nothing.
    pub(crate) async fn look(
        &self,
        connection: &Connection,
        server_report: Option<&Replication>,
        within: Duration,
    ) {
        let key = self.0.lock().key.clone();
        let place = key.as_deref().unwrap_or(GENERATION);
        let looked =
            async { (self.generation(connection, place).await, evicted(connection).await) };
        let (found, evicted) = timeout(within, looked).await.unwrap_or((Found::Unreadable, None));
        let known = &mut *self.0.lock();
        if known.key != key {
            // What was found is not what is kept at the new place.
            return;
        }
        let dropped = known.dropped(server_report, evicted);
        if let Some(loss) = known.observe(server_report, &found).or(dropped) {
            known.count += 1;
            known.last = Some(loss);
        }
    }

    /// How often something was lost, and what was lost last.
    pub(crate) fn totals(&self) -> (u64, Option<DataLoss>) {
        let known = self.0.lock();
        (known.count, known.last.clone())
    }

    /// Reads the generation, renews it in time, and makes one where there is none.
    async fn generation(&self, connection: &Connection, key: &str) -> Found {
        let found = read(connection, key).await;
        if self.0.lock().only_looks {
            return found;
        }
        let lives = GENERATION_LIVES.as_millis();
        match &found {
            Found::Missing => {
                let mut begin = redis::cmd("SET");
                begin.arg(key).arg(random()).arg("NX").arg("PX").arg(lives.to_string());
                // If it is refused, the shard has no generation; the histories tell all the same.
                let _ = connection.call(&begin).await;
                let begun = read(connection, key).await;
                self.0.lock().replaces(begun)
            }
            Found::Value(_) if self.0.lock().is_to_renew() => {
                let mut renew = redis::cmd("PEXPIRE");
                renew.arg(key).arg(lives.to_string());
                let _ = connection.call(&renew).await;
                found
            }
            Found::Value(_) | Found::Unreadable => found,
        }
    }
}

/// By `MGET`, which the step needs as well: no other right is asked for.
async fn read(connection: &Connection, key: &str) -> Found {
    let mut get = redis::cmd("MGET");
    get.arg(key);
    match connection.call(&get).await {
        Ok(Value::Array(mut values)) => match values.pop() {
            Some(Value::BulkString(value)) => Found::Value(value.into()),
            _ => Found::Missing,
        },
        _ => Found::Unreadable,
    }
}

/// How many keys the server has dropped for want of memory since it began.
async fn evicted(connection: &Connection) -> Option<u64> {
    let mut info = redis::cmd("INFO");
    info.arg("stats");
    let reply = connection.call(&info).await.ok()?;
    Info::from_reply(&reply)?.number("evicted_keys")
}

fn random() -> String {
    let draw = |place: u8| RandomState::new().hash_one(place);
    format!("{:016x}{:016x}", draw(0), draw(1))
}

impl KnownState {
    fn is_to_renew(&mut self) -> bool {
        let now = Instant::now();
        let then = *self.renewed.get_or_insert(now);
        let is_due = now.saturating_duration_since(then) >= RENEW_AFTER;
        if is_due {
            self.renewed = Some(now);
        }
        is_due
    }

    /// What there is now where nothing was: a generation that was lost is not the known one, even
    /// where the new one cannot be read.
    fn replaces(&self, found: Found) -> Found {
        match found {
            Found::Unreadable if self.generation.is_some() => Found::Missing,
            found => found,
        }
    }

    /// What the primary dropped since the last look, if it is the same one: another has its own
    /// count. To be asked before [`observe`](Self::observe), which takes its history for known.
    fn dropped(
        &mut self,
        server_report: Option<&Replication>,
        evicted: Option<u64>,
    ) -> Option<DataLoss> {
        let before = std::mem::replace(&mut self.evicted, evicted);
        let keys = evicted?.checked_sub(before?)?;
        let is_loss = keys > 0 && self.lineage(server_report) == Lineage::Same;
        is_loss.then_some(DataLoss::Evicted { keys })
    }

    /// What was lost since the last look.
    fn observe(&mut self, server_report: Option<&Replication>, found: &Found) -> Option<DataLoss> {
        let is_kept = match (&self.generation, found) {
            (None, _) | (_, Found::Unreadable) => None,
            (Some(known), found) => Some(matches!(found, Found::Value(value) if value == known)),
        };
        let course = self.lineage(server_report);
        match found {
            Found::Unreadable => {}
            Found::Missing => self.generation = None,
            Found::Value(value) => self.generation = Some(value.clone()),
        }
        if let Some(server_report) = server_report {
            self.history = Some((server_report.history.clone(), server_report.offset));
        }
        match (is_kept, course) {
            (Some(false), Lineage::Same | Lineage::Unknown) => Some(DataLoss::Flushed),
            (Some(false), _) => Some(DataLoss::Restarted),
            (_, Lineage::Truncated(bytes)) => Some(DataLoss::FailedOver { bytes }),
            (Some(true), Lineage::RolledBack) => Some(DataLoss::Older),
            (None, Lineage::RolledBack) => Some(DataLoss::Restarted),
            (_, Lineage::Same | Lineage::Unknown | Lineage::Other) => None,
        }
    }

    /// How the primary's history goes on from the one that is known.
    fn lineage(&self, server_report: Option<&Replication>) -> Lineage {
        let (Some((history, offset)), Some(server_report)) = (&self.history, server_report) else {
            return Lineage::Unknown;
        };
        if server_report.history == *history {
            return if server_report.offset < *offset {
                Lineage::RolledBack
            } else {
                Lineage::Same
            };
        }
        match &server_report.origin {
            Some(origin) if origin.history == *history => match offset.checked_sub(origin.until) {
                None | Some(0) => Lineage::Other,
                Some(bytes) => Lineage::Truncated(bytes),
            },
            // A primary that has no replicas for an hour begins another history in the same place.
            _ if server_report.offset > 0 && server_report.offset >= *offset => Lineage::Other,
            _ => Lineage::RolledBack,
        }
    }
}

/// How one history goes on from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lineage {
    /// It is the same one.
    Same,
    /// Nobody knows.
    Unknown,
    /// It goes on from the other, as far as it is known.
    Other,
    /// It goes on from the other, but for so many bytes at its end.
    Truncated(u64),
    /// It begins before the end of the other.
    RolledBack,
}

impl fmt::Display for DataLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flushed => f.write_str("its keys were deleted, as FLUSHALL does"),
            Self::Restarted => f.write_str("its primary began without the data that there was"),
            Self::Older => f.write_str("its primary began with older data"),
            Self::FailedOver { bytes } => write!(
                f,
                "the new primary lacks the last {bytes} bytes or more that the old one had written"
            ),
            Self::Evicted { keys } => write!(
                f,
                "it dropped {keys} keys for want of memory; give it more, and set its \
                 maxmemory-policy to noeviction"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Found {
        Found::Value(text.as_bytes().into())
    }

    /// A primary in the middle of history x, of generation g.
    fn known() -> KnownState {
        let mut known = KnownState::default();
        let server_report = Replication::leading("x", 100, None);
        assert_eq!(known.observe(Some(&server_report), &value("g")), None, "the first look");
        known
    }

    #[test]
    fn a_loss_is_distinguished_from_a_change() {
        let leading = Replication::leading;
        for (what, server_report, found, loss) in [
            ("nothing", leading("x", 120, None), value("g"), None),
            ("a flush", leading("x", 120, None), Found::Missing, Some(DataLoss::Flushed)),
            (
                "a flush and a new key",
                leading("x", 9_120, None),
                value("h"),
                Some(DataLoss::Flushed),
            ),
            ("an empty restart", leading("y", 0, None), Found::Missing, Some(DataLoss::Restarted)),
            ("a restart seen late", leading("y", 400, None), value("h"), Some(DataLoss::Restarted)),
            ("an old snapshot", leading("y", 0, None), value("g"), Some(DataLoss::Older)),
            ("a snapshot", leading("y", 80, Some(("x", 80))), value("g"), failed_over(20)),
            ("a failover", leading("y", 130, Some(("x", 110))), value("g"), None),
            ("a short one", leading("y", 130, Some(("x", 93))), value("g"), failed_over(7)),
            (
                "an empty one",
                leading("y", 9, Some(("x", 9))),
                value("h"),
                Some(DataLoss::Restarted),
            ),
            ("an hour without replicas", leading("y", 100, None), value("g"), None),
            ("no right to read", leading("x", 120, None), Found::Unreadable, None),
        ] {
            assert_eq!(known().observe(Some(&server_report), &found), loss, "{what}");
        }
        assert_eq!(known().observe(None, &Found::Missing), Some(DataLoss::Flushed));
        assert_eq!(known().observe(None, &value("g")), None);
    }

    fn failed_over(bytes: u64) -> Option<DataLoss> {
        Some(DataLoss::FailedOver { bytes })
    }

    #[test]
    fn keys_that_the_same_primary_dropped_are_a_loss() {
        let same = Replication::leading("x", 120, None);
        let mut known = known();
        assert_eq!(known.dropped(Some(&same), Some(5)), None, "dropped before the first look");
        assert_eq!(known.dropped(Some(&same), Some(8)), Some(DataLoss::Evicted { keys: 3 }));
        assert_eq!(known.dropped(Some(&same), Some(8)), None);
        assert_eq!(known.dropped(Some(&same), None), None);
        assert_eq!(known.dropped(Some(&same), Some(9)), None, "since when is not known");
        let promoted = Replication::leading("y", 130, Some(("x", 110)));
        assert_eq!(known.dropped(Some(&promoted), Some(50)), None, "its own count");
        assert_eq!(known.dropped(Some(&same), Some(0)), None, "it began anew");
    }

    #[test]
    fn each_loss_counts_once() {
        let mut known = known();
        let server_report = Replication::leading("x", 120, None);
        assert_eq!(known.observe(Some(&server_report), &Found::Missing), Some(DataLoss::Flushed));
        assert_eq!(known.observe(Some(&server_report), &Found::Missing), None);
        assert_eq!(known.observe(Some(&server_report), &value("h")), None);
        assert_eq!(known.observe(Some(&server_report), &value("i")), Some(DataLoss::Flushed));
    }
}
