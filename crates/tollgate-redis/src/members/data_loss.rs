//! Detects lost counters in a shard.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::Value;
use tokio::time::{Instant, timeout};

use crate::connection::{Connection, EPOCH, GENERATION, Replication};
use crate::info::Info;
use crate::random::random;

/// Returns the name of the generation key for a cluster node that owns the slot of `tag`. A loss of
/// data is detected by this key.
pub(crate) fn generation_at(tag: &str) -> String {
    format!("tg1:generation{{{tag}}}")
}

/// The time to live of the generation key. Each node renews the key at the interval `RENEW_AFTER`.
const GENERATION_LIVES: Duration = Duration::from_secs(30 * 24 * 3600);
const RENEW_AFTER: Duration = Duration::from_secs(600);

/// The reason why counters of a shard were lost. After a loss, some or all windows start again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataLoss {
    /// All keys were deleted, for example by `FLUSHALL`.
    Flushed,
    /// The primary started without the existing data. The primary was restarted, or another server
    /// replaced it.
    Restarted,
    /// The primary started with older data, for example from a snapshot.
    RolledBack,
    /// The promoted server lacks the last writes of the old primary.
    FailedOver {
        /// The number of bytes of the replication stream that are missing, at least.
        bytes: u64,
    },
    /// The primary evicted keys for lack of memory. Each evicted key may have been a current
    /// counter.
    Evicted {
        /// The number of evicted keys, which may belong to any program that uses the server.
        keys: u64,
    },
}

/// Monitors whether the primary still has its data.
///
/// The shard contains a generation key with a random value. Nodes renew the time to live of this
/// key. If the key is missing or has another value, the other keys are lost as well. The
/// replication id and the replication offset of the primary show whether the end of its data is
/// missing. The primary reports how many keys it evicted, but not their names. A node detects the
/// losses that occur after its own start.
#[derive(Debug, Default)]
pub(crate) struct DataLossMonitor(Mutex<KnownState>);

#[derive(Debug, Default)]
struct KnownState {
    /// The name of the generation key, if it is not [`GENERATION`].
    key: Option<Arc<str>>,
    /// Whether this node never writes or renews the generation key.
    only_looks: bool,
    generation: Option<Box<[u8]>>,
    /// The replication id of the primary and its offset in the stream.
    stream: Option<(Box<str>, u64)>,
    renewed: Option<Instant>,
    /// The number of keys that the primary had evicted at the last check. `None` if the primary did
    /// not report it.
    evicted: Option<u64>,
    count: u64,
    last: Option<DataLoss>,
}

/// The result of reading the generation key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Unreadable,
    Missing,
    Value(Box<[u8]>),
}

impl DataLossMonitor {
    /// Uses `key` as the name of the generation key from now on. The server must own the slot of
    /// this key.
    pub(crate) fn keep_at(&self, key: String) {
        let known = &mut *self.0.lock();
        if known.key.as_deref() != Some(&*key) {
            known.key = Some(key.into());
            known.generation = None;
            known.renewed = None;
        }
    }

    /// Writes nothing from now on. The monitor reads the generation key that other nodes wrote, and
    /// does not create the key.
    pub(crate) fn set_read_only(&self) {
        self.0.lock().only_looks = true;
    }

    /// Checks whether the primary that `connection` leads to, and that reported `server_report`,
    /// still has its data. Waits for at most `within`. A missing answer does not count as a loss.
    pub(crate) async fn check(
        &self,
        connection: &Connection,
        server_report: Option<&Replication>,
        within: Duration,
    ) {
        let key = self.0.lock().key.clone();
        let name = key.as_deref().unwrap_or(GENERATION);
        let looked = async { (self.generation(connection, name).await, evicted(connection).await) };
        let (found, evicted) = timeout(within, looked).await.unwrap_or((Found::Unreadable, None));
        let known = &mut *self.0.lock();
        if known.key != key {
            // The name of the generation key was changed during the read, so the value belongs to
            // the old key.
            return;
        }
        let dropped = known.dropped(server_report, evicted);
        if let Some(loss) = known.observe(server_report, &found).or(dropped) {
            known.count += 1;
            known.last = Some(loss);
        }
    }

    /// Writes `epoch` on the server that `connection` leads to. If the server rejects the write,
    /// its mark has no epoch, and the order of the configuration chooses among several primaries.
    pub(crate) async fn write_epoch(&self, connection: &Connection, epoch: u64, within: Duration) {
        if self.0.lock().only_looks {
            return;
        }
        let mut write = redis::cmd("SET");
        write.arg(EPOCH).arg(epoch).arg("PX").arg(GENERATION_LIVES.as_millis().to_string());
        let _ = timeout(within, connection.call(&write)).await;
    }

    /// Returns the number of losses and the cause of the last loss.
    pub(crate) fn totals(&self) -> (u64, Option<DataLoss>) {
        let known = self.0.lock();
        (known.count, known.last.clone())
    }

    /// Reads the generation key. Renews the key when it is due, and creates the key if it is
    /// missing.
    async fn generation(&self, connection: &Connection, key: &str) -> Found {
        let found = read(connection, key).await;
        if self.0.lock().only_looks {
            return found;
        }
        let lives = GENERATION_LIVES.as_millis();
        match &found {
            Found::Missing => {
                let mut begin = redis::cmd("SET");
                begin.arg(key).arg(generation()).arg("NX").arg("PX").arg(lives.to_string());
                // If the server rejects the write, the shard has no generation key. Replication ids
                // still show losses.
                let _ = connection.call(&begin).await;
                let begun = read(connection, key).await;
                self.0.lock().replaces(begun)
            }
            Found::Value(_) if self.0.lock().is_to_renew() => {
                let mut renew = redis::cmd("PEXPIRE");
                renew.arg(key).arg(lives.to_string());
                let _ = connection.call(&renew).await;
                if key == GENERATION {
                    let mut renew = redis::cmd("PEXPIRE");
                    renew.arg(EPOCH).arg(lives.to_string());
                    let _ = connection.call(&renew).await;
                }
                found
            }
            Found::Value(_) | Found::Unreadable => found,
        }
    }
}

/// Reads the generation key with `MGET`. The step uses the same command, so no further permission
/// is needed.
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

/// Returns how many keys the server has evicted since its start, or `None` if the server does not
/// report this number.
async fn evicted(connection: &Connection) -> Option<u64> {
    let mut info = redis::cmd("INFO");
    info.arg("stats");
    let reply = connection.call(&info).await.ok()?;
    Info::from_reply(&reply)?.number("evicted_keys")
}

fn generation() -> String {
    format!("{:016x}{:016x}", random(), random())
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

    /// Returns the result of a check that found no generation key and created the key. `found` is
    /// the result of reading the created key. If the created key cannot be read, and an earlier
    /// value of the key is known, the result is [`Found::Missing`], so the loss is still detected.
    fn replaces(&self, found: Found) -> Found {
        match found {
            Found::Unreadable if self.generation.is_some() => Found::Missing,
            found => found,
        }
    }

    /// Returns the evictions since the last check as a loss. Returns `None` if another server is
    /// the primary now, because each server has a count of its own. Call this function before
    /// [`observe`](Self::observe), which records the primary's stream.
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

    /// Compares the reports with the last known state, and records them. Returns the cause of a
    /// loss since the last check, if data were lost.
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
            self.stream = Some((server_report.id.clone(), server_report.offset));
        }
        match (is_kept, course) {
            (Some(false), Lineage::Same | Lineage::Unknown) => Some(DataLoss::Flushed),
            (Some(false), _) => Some(DataLoss::Restarted),
            (_, Lineage::Truncated(bytes)) => Some(DataLoss::FailedOver { bytes }),
            (Some(true), Lineage::RolledBack) => Some(DataLoss::RolledBack),
            (None, Lineage::RolledBack) => Some(DataLoss::Restarted),
            (_, Lineage::Same | Lineage::Unknown | Lineage::Other) => None,
        }
    }

    /// Returns the relation of the primary's replication stream to the last known stream.
    fn lineage(&self, server_report: Option<&Replication>) -> Lineage {
        let (Some((id, offset)), Some(server_report)) = (&self.stream, server_report) else {
            return Lineage::Unknown;
        };
        if server_report.id == *id {
            return if server_report.offset < *offset {
                Lineage::RolledBack
            } else {
                Lineage::Same
            };
        }
        match &server_report.origin {
            Some(origin) if origin.id == *id => match offset.checked_sub(origin.until) {
                None | Some(0) => Lineage::Other,
                Some(bytes) => Lineage::Truncated(bytes),
            },
            // A primary that had no replicas for an hour gets a new replication id at the same
            // offset.
            _ if server_report.offset > 0 && server_report.offset >= *offset => Lineage::Other,
            _ => Lineage::RolledBack,
        }
    }
}

/// The relation of the primary's current replication stream to the last known stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lineage {
    /// The current stream is the known stream.
    Same,
    /// It is unknown whether the current stream continues the known stream.
    Unknown,
    /// The current stream is a new stream that continues the known stream. No bytes of the known
    /// stream are known to be missing.
    Other,
    /// The current stream continues the known stream, but this number of bytes at the end of the
    /// known stream is missing.
    Truncated(u64),
    /// The current stream ends before the last known end of the known stream: the primary has
    /// older data than at the last check.
    RolledBack,
}

impl fmt::Display for DataLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flushed => f.write_str("its keys were deleted, as FLUSHALL does"),
            Self::Restarted => f.write_str("its primary started without its earlier data"),
            Self::RolledBack => f.write_str("its primary started with older data"),
            Self::FailedOver { bytes } => write!(
                f,
                "the new primary lacks the last {bytes} bytes or more that the old one had written"
            ),
            Self::Evicted { keys } => write!(
                f,
                "it evicted {keys} keys because its memory was full; increase maxmemory, and set \
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

    /// Returns a known primary in the middle of the stream `x`. Its generation key has the value
    /// `g`.
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
            ("an old snapshot", leading("y", 0, None), value("g"), Some(DataLoss::RolledBack)),
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
