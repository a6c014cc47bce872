//! The key `candidate`: a second definition of a limit that is evaluated on the same requests.

use super::choices::{AlgorithmName, AnchorName, WeekdayName};
use crate::decode::{Duration, Integer, WindowLength, Zone, keys};

keys! {
    /// A second definition of a limit. It is evaluated on the same requests with its own counters
    /// and never refuses a request. Keys that it does not set have the limit's values.
    struct Candidate as "a candidate" {
        /// The algorithm.
        algorithm: AlgorithmName,
        /// The quota of a window.
        quota: Integer,
        /// The time that the quota is for.
        window: WindowLength,
        /// For calendar windows: the time zone in which they begin.
        timezone: Zone,
        /// For `window: week`: the day on which it begins.
        week_start: WeekdayName,
        /// For `window: month`: the day of the month on which it begins.
        billing_day: Integer,
        /// For `token_bucket`: the most units that can be saved up. If the limit has another
        /// algorithm, the default is the candidate's quota.
        burst: Integer,
        /// For `sliding_window`: the length of the blocks that the window is divided into.
        precision: Duration,
        /// For `fixed_window`: when a window begins.
        anchor: AnchorName,
        /// For `concurrency`: how long a permit is valid if its node does not renew it.
        permit_ttl: Duration,
    }
}
