//! Every metric that there is. `docs/metrics.md` is made of this list.

use tollgate_server::metrics::{Family, Kind};

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All of them, in the order of the page.
        #[cfg(test)]
        pub(super) const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD = Gauge "tollgate_build_info" ["version"]
        "The build that runs, always 1";
    POLICY = Gauge "tollgate_policy_info" ["version"]
        "The version of the policy in force, always 1";
    RELOADS = Counter "tollgate_policy_reloads_total" ["result"]
        "Times that the policy file was read anew and put in force (done) or refused (refused)";
    RELOADED_AT = Gauge "tollgate_policy_last_reload_timestamp_seconds" []
        "When the policy in force was put there, in seconds since the epoch; missing where that was at the start";
    RELOAD_REFUSED = Gauge "tollgate_policy_file_refused" []
        "1 while the policy file as it is now cannot be put in force";
    REQUESTS = Counter "tollgate_requests_total" ["verdict", "source"]
        "Decisions by what became of the request and who decided";
    DECISIONS = Counter "tollgate_decisions_total" ["limit", "verdict", "source"]
        "Decisions that asked a limit, by what became of the request and who decided";
    REFUSALS = Counter "tollgate_refusals_total" ["limit", "source"]
        "Decisions in which this limit had no room, by who decided";
    SHADOW = Counter "tollgate_shadow_decisions_total" ["limit", "verdict"]
        "What a limit of a rule in shadow mode would have said by itself";
    DEGRADED = Counter "tollgate_degraded_decisions_total" ["rule", "source", "error"]
        "Decisions that the store did not make, by rule, who decided instead and why";
    COMPLETIONS = Counter "tollgate_completions_total" ["outcome"]
        "Charges that waited for the answer of a request: charged, found a limit full (overrun), or unknown (lost)";
    DURATION = Histogram "tollgate_door_duration_seconds" ["door"]
        "How long decisions took behind a door, with the store and without the network to the client";
    CONNECTIONS = Gauge "tollgate_door_connections" ["door"]
        "Open connections";
    CONNECTIONS_MAX = Gauge "tollgate_door_connections_max" ["door"]
        "How many connections a door serves at once; who comes then waits";
    MEMORY_ENTRIES = Gauge "tollgate_memory_entries" []
        "Entries that the store in this process holds";
    MEMORY_REFUNDS = Gauge "tollgate_memory_refunds" []
        "Those of them that remember a refund";
    MEMORY_BYTES = Gauge "tollgate_memory_bytes" []
        "Bytes that are allocated for entries";
    MEMORY_EVICTED = Counter "tollgate_memory_evicted_total" []
        "Entries in force that were dropped to make room: each gave its subject back what it had used";
    MEMORY_SWEPT = Counter "tollgate_memory_swept_total" []
        "Entries that were over and were forgotten";
    MEMORY_DISCARDED = Counter "tollgate_memory_discarded_total" []
        "Charges that found state that counts as none: of an impossible future, or of another algorithm";
    MEMORY_FULL = Counter "tollgate_memory_full_total" []
        "Calls that found no room";
    REMEMBERED = Counter "tollgate_store_remembered_refusals_total" []
        "Calls that were refused without asking, because they had been refused until a later time";
    STOOD_IN = Counter "tollgate_store_stood_in_total" []
        "Calls that this node's share answered because the store had no answer";
    UNANSWERED = Counter "tollgate_store_unanswered_total" []
        "Calls that nothing answered";
    MISSED = Counter "tollgate_store_deadline_misses_total" []
        "Calls that were given up at the deadline of the whole decision";
    STRANDED = Counter "tollgate_store_stranded_total" []
        "Charges that were taken for nothing and could not be given back";
    DISCARDED = Counter "tollgate_store_discarded_total" []
        "Calls that met stored state that counts as none";
    SHARD_UP = Gauge "tollgate_shard_up" ["shard"]
        "1 while the primary of a shard answers";
    CLOCK_OFFSET = Gauge "tollgate_shard_clock_offset_seconds" ["shard"]
        "How far the clock of a shard is ahead of this machine's; missing before its first reply";
    CLOCK_SKEW = Gauge "tollgate_shard_clock_skew_seconds" ["shard"]
        "By how much the clock of a shard surely differs from this machine's";
    WINDOWS_LOST = Counter "tollgate_shard_windows_lost_total" ["shard"]
        "Times that counters of a shard were found lost, so that windows began anew";
    CIRCUIT = Gauge "tollgate_lane_circuit" ["shard", "lane", "state"]
        "1 for the state that the circuit of a lane is in: closed (asked), seeking (waited for), open (not asked)";
    CIRCUIT_OPENED = Counter "tollgate_lane_circuit_opened_total" ["shard", "lane"]
        "Times that the circuit of a lane opened";
    CLOCK_STEPS = Counter "tollgate_lane_clock_steps_total" ["shard", "lane"]
        "Times that the clock of a server was found set";
    CALLS = Counter "tollgate_lane_calls_total" ["shard", "lane"]
        "Calls that were sent to a server";
    JOBS = Counter "tollgate_lane_jobs_total" ["shard", "lane"]
        "Jobs that were sent in them; by calls, how many travel together";
    RETRIES = Counter "tollgate_lane_retries_total" ["shard", "lane"]
        "Jobs that a server refused as late, which proves that they did not run, and that were sent again";
    OVERLOADED = Counter "tollgate_lane_overloaded_total" ["shard", "lane"]
        "Jobs that were turned away because the lane was full";
    UNKNOWN = Counter "tollgate_lane_unknown_outcomes_total" ["shard", "lane"]
        "Jobs that had no answer by their deadline: whether they ran is not known";
}
