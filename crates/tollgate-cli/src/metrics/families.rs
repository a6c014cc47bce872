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
    CANDIDATE = Counter "tollgate_candidate_decisions_total" ["limit", "live", "candidate"]
        "Requests that a limit and its candidate both judged, by what each made of them by itself";
    DEGRADED = Counter "tollgate_degraded_decisions_total" ["rule", "source", "error"]
        "Decisions that the store did not make, by rule, who decided instead and why";
    COMPLETIONS = Counter "tollgate_completions_total" ["outcome"]
        "Charges that waited for the answer of a request: charged, found a limit full (overrun), or unknown (lost)";
    HOLDS = Counter "tollgate_holds_total" ["limit", "event"]
        "Leases of places in flight and reservations of a limit: taken (opened), settled, given back (released), ended when they were held no more (late), or not heard of by the store at their end (unanswered)";
    SHED = Counter "tollgate_shed_requests_total" ["priority", "cause", "mode"]
        "Requests that were shed before any limit was asked, by what there was too much of: the fleet's, or this node's, requests in flight, queueing, late tasks; those of a shedder in shadow mode passed";
    SHED_LEVEL = Gauge "tollgate_shed_level" []
        "How much this node sheds by its own load: 1000 for each priority that is shed whole, test, read, write and critical in this order";
    SHED_IN_FLIGHT = Gauge "tollgate_shed_in_flight" []
        "Requests in flight that this node's shedder counts";
    SHED_IN_FLIGHT_MAX = Gauge "tollgate_shed_in_flight_max" []
        "How many of them there may be, which may be adaptive; missing where that is not bounded";
    QUEUED = Gauge "tollgate_queued_requests" []
        "Requests that wait on this node for a place in flight, by a rule's queue";
    SPANS = Counter "tollgate_trace_spans_total" ["outcome"]
        "Spans of traced requests: taken by the collector (exported), not taken (lost), or too many at once to wait for it (dropped); missing where nothing is traced";
    DURATION = Histogram "tollgate_door_duration_seconds" ["door"]
        "How long decisions took behind a listener, with the store and without the network to the client";
    CONNECTIONS = Gauge "tollgate_door_connections" ["door"]
        "Open connections";
    CONNECTIONS_MAX = Gauge "tollgate_door_connections_max" ["door"]
        "How many connections a listener serves at once; who comes then waits";
    MEMORY_ENTRIES = Gauge "tollgate_memory_entries" ["side"]
        "Entries that the store in this process holds";
    MEMORY_REFUNDS = Gauge "tollgate_memory_refunds" ["side"]
        "Those of them that remember a refund";
    MEMORY_BYTES = Gauge "tollgate_memory_bytes" ["side"]
        "Bytes that are allocated for entries";
    MEMORY_EVICTED = Counter "tollgate_memory_evicted_total" ["side"]
        "Entries in force that were dropped to make room: each gave its subject back what it had used";
    MEMORY_SWEPT = Counter "tollgate_memory_swept_total" ["side"]
        "Entries that were over and were forgotten";
    MEMORY_DISCARDED = Counter "tollgate_memory_discarded_total" ["side"]
        "Charges that found state that counts as none: of an impossible future, or of another algorithm";
    MEMORY_FULL = Counter "tollgate_memory_full_total" ["side"]
        "Calls that found no room";
    REMEMBERED = Counter "tollgate_store_remembered_refusals_total" ["side"]
        "Calls that were refused without asking, because they had been refused until a later time";
    STOOD_IN = Counter "tollgate_store_stood_in_total" ["side"]
        "Calls that this node's share answered because the store had no answer";
    UNANSWERED = Counter "tollgate_store_unanswered_total" ["side"]
        "Calls that nothing answered";
    MISSED = Counter "tollgate_store_deadline_misses_total" ["side"]
        "Calls that were given up at the deadline of the whole decision";
    STRANDED = Counter "tollgate_store_stranded_total" ["side"]
        "Charges that were taken for nothing and could not be given back";
    DISCARDED = Counter "tollgate_store_discarded_total" ["side"]
        "Calls that met stored state that counts as none";
    LEASED = Counter "tollgate_store_leased_decisions_total" ["side"]
        "Calls that were decided out of units that this node had taken in advance, without asking";
    LEASES = Counter "tollgate_store_leases_total" ["side"]
        "Leases that this node took: a call of the store each";
    LEASED_UNITS = Counter "tollgate_store_leased_units_total" ["side", "fate"]
        "Units of leases that were taken, given back unused, and lost until their windows are over because no server took them back";
    SHARD_UP = Gauge "tollgate_shard_up" ["side", "shard"]
        "1 while the primary of a shard answers";
    CLOCK_OFFSET = Gauge "tollgate_shard_clock_offset_seconds" ["side", "shard"]
        "How far the clock of a shard is ahead of this machine's; missing before its first reply";
    CLOCK_SKEW = Gauge "tollgate_shard_clock_skew_seconds" ["side", "shard"]
        "By how much the clock of a shard surely differs from this machine's";
    WINDOWS_LOST = Counter "tollgate_shard_windows_lost_total" ["side", "shard"]
        "Times that counters of a shard were found lost, so that windows began anew";
    REPAIRED_UNITS = Counter "tollgate_shard_repaired_units_total" ["side", "shard"]
        "Units that a failover had lost of a shard, that this node remembered, and that it was told again";
    REPAIRED_LIMITS = Counter "tollgate_shard_repaired_limits_total" ["side", "shard"]
        "Clients' limits that those units were of";
    REPAIR_ABANDONED = Counter "tollgate_shard_repair_abandoned_limits_total" ["side", "shard"]
        "Clients' limits that a shard could not be told again in time";
    SHARD_DURATION = Histogram "tollgate_shard_duration_seconds" ["side", "shard"]
        "How long calls of a shard took, with the way there and back and what waited for a lane; one that was given up counts until then";
    CIRCUIT = Gauge "tollgate_lane_circuit" ["side", "shard", "lane", "state"]
        "1 for the state that the circuit of a lane is in: closed (asked), seeking (waited for), open (not asked)";
    CIRCUIT_OPENED = Counter "tollgate_lane_circuit_opened_total" ["side", "shard", "lane"]
        "Times that the circuit of a lane opened";
    CLOCK_STEPS = Counter "tollgate_lane_clock_steps_total" ["side", "shard", "lane"]
        "Times that the clock of a server was found set";
    CALLS = Counter "tollgate_lane_calls_total" ["side", "shard", "lane"]
        "Calls that were sent to a server";
    JOBS = Counter "tollgate_lane_jobs_total" ["side", "shard", "lane"]
        "Jobs that were sent in them; by calls, how many travel together";
    RETRIES = Counter "tollgate_lane_retries_total" ["side", "shard", "lane"]
        "Jobs that a server refused as late, which proves that they did not run, and that were sent again";
    OVERLOADED = Counter "tollgate_lane_overloaded_total" ["side", "shard", "lane"]
        "Jobs that were turned away because the lane was full";
    UNKNOWN = Counter "tollgate_lane_unknown_outcomes_total" ["side", "shard", "lane"]
        "Jobs that had no answer by their deadline: whether they ran is not known";
    MAP = Gauge "tollgate_map_info" ["side", "version"]
        "The map of shards that this node uses, always 1";
    MAP_NODES = Gauge "tollgate_map_nodes" ["side", "map"]
        "Nodes that were heard of lately, by the map that they use: this node's (alike), the one that is left (before) or neither (other)";
    MAP_SILENT = Gauge "tollgate_map_silent_shards" ["side"]
        "Shards that did not tell which nodes they know";
    MOVE_PHASE = Gauge "tollgate_move_phase" ["side", "phase"]
        "1 for the phase that a move to another map is in at this node: following, leading or over; missing while nothing moves";
    MOVE_CARRIED = Counter "tollgate_move_carried_total" ["side"]
        "Counters that this node took along to their new shards";
    MOVE_LAGGING = Counter "tollgate_move_lagging_total" ["side"]
        "Charges that a new shard did not answer while it followed, and what one of both shards did not answer that was to be given back";
    MOVE_LEFT_BEHIND = Counter "tollgate_move_left_behind_total" ["side"]
        "Calls before which an old shard could not be asked what its clients had used there, so that they began anew";
    ROLLOUT_PERCENT = Gauge "tollgate_rollout_percent" []
        "How many clients of a hundred the new one of two stores decides";
    ROLLOUT_CARRIED = Counter "tollgate_rollout_carried_total" []
        "Counters that moved along with their clients from one of two stores to the other";
    ROLLOUT_LEFT_BEHIND = Counter "tollgate_rollout_left_behind_total" []
        "Calls before which a store could not be asked what its clients had used there, so that they began anew";
    ROLLOUT_STRANDED = Counter "tollgate_rollout_stranded_total" []
        "Charges over two stores that were taken for nothing and could not be given back, or were given back at one of both only";
    COMPARED_PERCENT = Gauge "tollgate_compared_percent" []
        "How many clients of a hundred a second store is compared for";
    COMPARED = Counter "tollgate_compared_charges_total" []
        "Charges that both of two stores answered";
    DIFFERENCES = Counter "tollgate_compared_differences_total" ["kind"]
        "Those of them that were answered differently: in the verdict, in the units that remain, or in the reset";
    NOT_COMPARED = Counter "tollgate_compared_missed_total" ["reason"]
        "What was not compared: the second store did not answer (unanswered), too much waited for it (skipped), it did not know what to give back (uncomparable)";
    MEMCACHED_CONNECTED = Gauge "tollgate_memcached_connections" ["side", "server"]
        "Connections to a server of memcached";
    MEMCACHED_CONNECTIONS_MAX = Gauge "tollgate_memcached_connections_max" ["side", "server"]
        "How many there are to be";
    MEMCACHED_EVICTED = Counter "tollgate_memcached_evicted_total" ["side", "server"]
        "Items that a server dropped before their end, of whoever uses it";
    MEMCACHED_RESTARTS = Counter "tollgate_memcached_restarts_total" ["side", "server"]
        "Times that a server was found started anew, and so empty";
    MEMCACHED_FLUSHES = Counter "tollgate_memcached_flushes_total" ["side", "server"]
        "Times that a server was told to forget everything";
    MEMCACHED_TORN = Counter "tollgate_memcached_torn_total" ["side", "server"]
        "Pairs of items of which one was missing before its time, so that a window began anew";
    MEMCACHED_OUTRUN = Counter "tollgate_memcached_outrun_total" ["side", "server"]
        "Changes that another node outran, and that were tried again";
    MEMCACHED_CONTENDED = Counter "tollgate_memcached_contended_total" ["side", "server"]
        "Calls that gave up because they were outrun again and again";
    MEMCACHED_STRANDED = Counter "tollgate_memcached_stranded_total" ["side", "server"]
        "Charges that were taken for nothing and could not be given back";
    MEMCACHED_DURATION = Histogram "tollgate_memcached_duration_seconds" ["side", "server"]
        "How long calls of a server took, with the way there and back; one that was given up counts until then";
}
