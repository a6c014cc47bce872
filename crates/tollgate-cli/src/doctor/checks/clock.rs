//! Checks that the server's clock agrees with this machine's.

use tollgate::model::Timestamp;

use super::{Finding, Level};

const CHECK: &str = "clock";

/// The clock difference from which a finding is reported, in milliseconds. The bound is large
/// because a response can take some time.
const NOTABLE: u64 = 1_000;

/// The difference in milliseconds beyond which a node is not ready, and beyond which a node treats
/// stored state as written by a server with a broken clock.
const SKEW_MAX: u64 = 5_000;

/// The difference in milliseconds beyond which nodes decide by the server's clock: half of
/// [`SKEW_MAX`], so no two nodes differ by more than [`SKEW_MAX`].
const OVERRIDDEN: u64 = SKEW_MAX / 2;

const REMEDY: &str = "synchronize the clocks of all machines with chrony or systemd-timesyncd";

/// Compares the clock of a server with the clock of this machine. `micros` is the server's time in
/// microseconds. `asked_at` is this machine's time just before the request for the server's time.
/// The response arrived within two seconds. Returns `None` if the server's time is unknown.
pub(super) fn check(micros: Option<u64>, asked_at: Timestamp) -> Option<Finding> {
    let (server, own) = (micros? / 1_000, asked_at.as_millis());
    let apart = server.abs_diff(own);
    let side = if server > own { "ahead of" } else { "behind" };
    let decides = if apart > OVERRIDDEN { ", so the server's clock decides on it" } else { "" };
    let what = format!("about {apart} ms {side} this machine{decides}");
    Some(match apart {
        0..NOTABLE => Finding::ok(CHECK, what),
        NOTABLE..SKEW_MAX => Finding::of(CHECK, Level::Warning, what, REMEDY),
        _ => Finding::of(CHECK, Level::Problem, what, REMEDY),
    })
}
