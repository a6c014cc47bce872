//! How exactly a store knows the clock of a real server.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::kit::Server;
use tollgate_core::Timestamp;

/// The longest time to open a store after which its answer counts as prompt.
const PROMPT: Duration = Duration::from_millis(200);

/// The server rounds the time of its start down, so the time of a server that started late in a
/// second was behind by up to 2 s. A store that expected at most 1.5 s replaced correct clocks.
#[tokio::test]
async fn the_time_of_a_server_that_started_late_in_a_second_is_within_its_error() {
    let in_second = Duration::from_nanos(since_epoch().subsec_nanos().into());
    let late = Duration::from_millis(900);
    let wait = late.checked_sub(in_second).unwrap_or(late + Duration::from_secs(1) - in_second);
    tokio::time::sleep(wait).await;
    let server = Server::start();
    // Each store reads the server's time once, at another moment between two ticks.
    for _ in 0..12 {
        let begun = Instant::now();
        let store = server.store().await;
        let now = u64::try_from(since_epoch().as_millis()).expect("a time before the year 10000");
        let (ahead, uncertainty) =
            store.clock_offset(Timestamp::from_millis(now)).expect("a known time");
        // On a busy machine, the answer may be older than the error permits.
        if begun.elapsed() < PROMPT {
            let (behind, most) = (-i128::from(ahead), i128::from(uncertainty));
            assert!(behind <= most, "{behind} ms of at most {most}");
            // A server that starts when its monotonic clock is later in a second than the time of
            // day is ahead by the difference, for all nodes alike.
            assert!(-behind <= most + 1_000, "{behind} ms");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970")
}
