//! A definition that is tried beside a limit, as written.

use super::choices::{AlgorithmName, AnchorName};
use crate::decode::{Duration, Whole, keys};

keys! {
    /// Another definition beside a limit, judged on the same requests with counters of its own; it refuses nobody. What it does not say is the limit's.
    struct Candidate as "a candidate" {
        /// How it counts.
        algorithm: AlgorithmName,
        /// How much it admits in a window.
        quota: Whole,
        /// The time that its quota is for.
        window: Duration,
        /// Of a `token_bucket`: the most that can be saved up. Another algorithm's limit has none: then the quota.
        burst: Whole,
        /// Of a `sliding_window`: the pieces it is cut into.
        precision: Duration,
        /// Of a `fixed_window`: when it begins.
        anchor: AnchorName,
        /// Of `concurrency`: how long a permit is valid if its node does not renew it.
        permit_ttl: Duration,
    }
}
