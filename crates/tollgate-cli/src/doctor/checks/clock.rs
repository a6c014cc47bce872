//! Whether the server's clock agrees with this machine's.

use tollgate::core::Timestamp;

use super::{Finding, Level};

const CHECK: &str = "clock";

/// From where on it is told, in milliseconds; an answer may take a while.
const NOTABLE: u64 = 1_000;

/// As far as two clocks may disagree before state counts as that of a broken one, in milliseconds.
const SKEW_MAX: u64 = 5_000;

const REMEDY: &str =
    "have a time daemon (chrony, systemd-timesyncd) set the clocks of all machines";

/// `asked_at` is what this machine showed just before; the answer came within two seconds.
pub(super) fn check(micros: Option<u64>, asked_at: Timestamp) -> Option<Finding> {
    let (server, own) = (micros? / 1_000, asked_at.as_millis());
    let apart = server.abs_diff(own);
    let side = if server > own { "ahead of" } else { "behind" };
    let what = format!("about {apart} ms {side} this machine");
    Some(match apart {
        0..NOTABLE => Finding::ok(CHECK, what),
        NOTABLE..SKEW_MAX => Finding::of(CHECK, Level::Warning, what, REMEDY),
        _ => Finding::of(CHECK, Level::Problem, what, REMEDY),
    })
}
