//! Tests of the overflow of items' version numbers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::kit::{PATIENCE, Server, connected, subject, take, window};
use tokio::task::JoinSet;
use tollgate_conformance::{Figure, assert_held};
use tollgate_core::{Limit, Millis, Timestamp};
use tollgate_memcached::{Layout, Memcached, ServerSettings};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);
/// The number of concurrent callers. `CALLS` is the number of charges of each caller.
const CALLERS: u64 = 4;
const CALLS: u64 = 40;
/// The number of versions that the server assigns before the overflow.
const BEFORE: u64 = 60;

/// One version of the count gets the number 0, which the server treats as no number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_exact_while_the_numbers_of_versions_begin_again() {
    for layout in [Layout::Cell, Layout::Pairs] {
        let folder = tempfile::tempdir().unwrap();
        let server = numbering_from(&folder.path().join("memory"), u64::MAX - BEFORE);
        let store = connected(&ServerSettings { layout, ..server.settings() }).await;
        let store = Arc::new(store);
        let before = number(&server);
        let mut used = charge_at_once(&store).await;
        used.sort_unstable();
        let otherwise = used.iter().zip(1..).filter(|(values, once)| *values != once).count();
        let after = number(&server);
        assert_held(&[
            Figure::fault_seen("times that the numbers began anew", u64::from(after < before)),
            Figure::at_most("calls without an answer", CALLERS * CALLS - used.len() as u64, 0),
            Figure::at_most("units not counted once", otherwise as u64, 0),
        ]);
    }
}

/// Returns the `used` values that the concurrent callers receive.
async fn charge_at_once(store: &Arc<Memcached>) -> Vec<u64> {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let store = Arc::clone(store);
        callers.spawn(async move {
            let mut values = Vec::new();
            for _ in 0..CALLS {
                values.extend(charge(&store).await);
            }
            values
        });
    }
    callers.join_all().await.concat()
}

async fn charge(store: &Memcached) -> Option<u64> {
    let subject = subject("a");
    let values = store.apply_within(NOW, &[take(&limit(), &subject)], PATIENCE).await;
    values.ok().map(|readings| readings[0].used)
}

fn limit() -> Limit {
    window("core", 5_000, Millis::from_secs(3_600))
}

/// Starts a server that continues its version numbers at `number`, like a server that was stopped
/// and restarted with its memory file.
fn numbering_from(memory: &Path, number: u64) -> Server {
    let folder = memory.parent().unwrap();
    // memcached drops root privileges, so other users must be permitted to write to the folder.
    fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
    let mut server = Server::start_with(&["-m", "64", "-e", memory.to_str().unwrap()]);
    server.execute("ms before 1\r\n1");
    server.end();
    let saved = memory.with_extension("meta");
    let text = fs::read_to_string(&saved).unwrap();
    fs::write(&saved, saved_before(&text, number)).unwrap();
    server.revive();
    assert_eq!(server.execute("mg before v"), ["VA 1", "1"], "it goes on from {text}");
    server
}

/// Returns the saved metadata with `number` as the last version number and a stop time one minute
/// earlier. The earlier time is necessary, because a server rejects metadata that was saved within
/// the last second.
fn saved_before(text: &str, number: u64) -> String {
    let lines = text.lines().map(|line| match line.split_once(' ') {
        Some((name @ "Kcurrent_cas", _)) => format!("{name} {number}\n"),
        Some((name @ "Kstop_time", at)) => format!("{name} {}\n", at.parse::<u64>().unwrap() - 60),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Returns the version number of an item that this function writes.
fn number(server: &Server) -> u64 {
    let values = server.execute("ms now 1 c\r\n1");
    values[0].strip_prefix("HD c").unwrap().parse().unwrap()
}
