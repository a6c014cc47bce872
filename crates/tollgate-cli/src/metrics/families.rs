//! The list of all metrics, from which `docs/metrics.md` is generated.

use tollgate_server::metrics::{Family, Kind};

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metric families, in the order of the page.
        #[cfg(test)]
        pub(super) const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD = Gauge "tollgate_build_info" ["version"]
        "The version of the running build; always 1";
    POLICY = Gauge "tollgate_policy_info" ["version"]
        "The version of the current policy; always 1";
    RELOADS = Counter "tollgate_policy_reloads_total" ["result"]
        "Reloads of a changed policy file: applied, or rejected because of a mistake";
    RELOADED_AT = Gauge "tollgate_policy_last_reload_timestamp_seconds" []
        "When the current policy was applied, in seconds since the Unix epoch; missing until the first reload";
    FILE_REJECTED = Gauge "tollgate_policy_file_rejected" []
        "1 while the policy file on disk is rejected and an older policy is in use";
    REQUESTS = Counter "tollgate_requests_total" ["decision", "source"]
        "Requests by decision (admitted or refused) and by what decided";
    DECISIONS = Counter "tollgate_decisions_total" ["limit", "decision", "source"]
        "Decisions that evaluated this limit, by decision of the request and by what decided";
    REFUSALS = Counter "tollgate_refusals_total" ["limit", "source"]
        "Decisions that this limit refused, by what decided";
    SHADOW = Counter "tollgate_shadow_decisions_total" ["limit", "decision"]
        "Decisions that a limit of a rule or descriptor in shadow mode would have made";
    CANDIDATE = Counter "tollgate_candidate_decisions_total" ["limit", "live", "candidate"]
        "Requests that a limit and its candidate both evaluated, by the decision of each";
    DEGRADED = Counter "tollgate_degraded_decisions_total" ["rule", "source", "error"]
        "Decisions without an answer of the store, by rule, by what decided and by the store's error";
    AMBIGUOUS = Counter "tollgate_ambiguous_requests_total" ["reason"]
        "Requests that were refused before any limit was charged because their path, their credential or their body can be read in more than one way";
    COMPLETIONS = Counter "tollgate_completions_total" ["outcome"]
        "Charges on completion: charged, refused because the limit was full (overrun), or without an answer of the store (unknown)";
    RESERVATIONS = Counter "tollgate_reservations_total" ["limit", "event"]
        "Concurrency permits and reservations: opened, settled, released, ended after they had expired (late), or ended without an answer of the store (unanswered)";
    SHED = Counter "tollgate_shed_requests_total" ["priority", "cause", "mode"]
        "Requests that load shedding refused before any limit was charged, by cause; in mode shadow they passed";
    SHED_LEVEL = Gauge "tollgate_shed_level" []
        "Load shedding level of this node: 1000 for each priority that is shed completely, in the order test, read, write, critical";
    SHED_IN_FLIGHT = Gauge "tollgate_shed_in_flight" []
        "Requests in flight that load shedding counts on this node";
    SHED_IN_FLIGHT_MAX = Gauge "tollgate_shed_in_flight_max" []
        "The limit of requests in flight of this node; missing if there is none";
    QUEUED = Gauge "tollgate_queued_requests" []
        "Requests that wait in the queue of a rule for a concurrency permit";
    ACCESS_LOG_DROPPED = Counter "tollgate_access_log_dropped_lines_total" []
        "Lines of the access log that were not written, because its queue was full or the file could not be written; missing without an access log";
    SPANS = Counter "tollgate_trace_spans_total" ["outcome"]
        "Trace spans: exported, not accepted by the collector (failed), or dropped because the queue was full; missing if tracing is off";
    DURATION = Histogram "tollgate_listener_duration_seconds" ["listener"]
        "Time to decide a request, with the store and without the network to the client";
    CONNECTIONS = Gauge "tollgate_listener_connections" ["listener"]
        "Open connections";
    CONNECTIONS_MAX = Gauge "tollgate_listener_connections_max" ["listener"]
        "The most connections that a listener serves at the same time; further connections wait";
    CLOSED = Counter "tollgate_listener_connections_closed_total" ["listener", "reason"]
        "Connections that a listener closed: no_request, slow_request (an incomplete head or command), control_frames (an HTTP/2 client sent too many), command_memory (incomplete commands of all clients of the Redis protocol use too much memory)";
    WRONG_TOKENS = Counter "tollgate_listener_wrong_tokens_total" ["listener"]
        "Requests and commands with a token that the listener does not have";
    CERTIFICATE_EXPIRY = Gauge "tollgate_tls_certificate_expiry_timestamp_seconds" ["listener"]
        "When the certificate of a listener, or the client certificate for upstreams (`upstream`), expires, in seconds since the Unix epoch; missing without a certificate";
    CERTIFICATE_RELOADS = Counter "tollgate_tls_reloads_total" ["listener", "result"]
        "Reloads of certificate files: applied, or rejected because a file has an error and the previous certificates stay in use";
    PROXY_CLOSED = Counter "tollgate_proxy_connections_closed_total" ["reason"]
        "Client connections that the proxy closed or refused: client (the client closed it), idle, evicted (idle while the proxy was full), address_limit (refused: too many from one address), tls_handshake (it failed or took too long), slow_head, slow_request, slow_response (over HTTP/2 a reset stream), refused (after a refusal while nearly full), control_frames (an HTTP/2 client sent too many), malformed, shutdown";
    UPSTREAM_REQUESTS = Counter "tollgate_upstream_requests_total" ["upstream", "address"]
        "Requests that the proxy sent to an address of an upstream, attempts that could not connect included";
    UPSTREAM_FAILURES = Counter "tollgate_upstream_failures_total" ["upstream", "address"]
        "Requests that an address of an upstream did not serve: it could not be reached, sent no valid response in time, or answered with 502, 503 or 504";
    UPSTREAM_IN_FLIGHT = Gauge "tollgate_upstream_requests_in_flight" ["upstream", "address"]
        "Requests to an address of an upstream without a complete response";
    UPSTREAM_SET_ASIDE = Gauge "tollgate_upstream_set_aside" ["upstream", "address"]
        "1 while an address of an upstream receives no requests, because it failed three times in a row or more";
    UPSTREAM_RETRIES = Counter "tollgate_upstream_retries_total" ["reason"]
        "Requests that the proxy sent once more: connect (the first address could not be reached), closed (the upstream closed a kept connection before it answered)";
    MEMORY_ENTRIES = Gauge "tollgate_memory_entries" ["side"]
        "Entries in the memory store";
    MEMORY_REFUNDS = Gauge "tollgate_memory_refunds" ["side"]
        "Entries in the memory store that record a refund";
    MEMORY_BYTES = Gauge "tollgate_memory_bytes" ["side"]
        "Bytes that are allocated for entries";
    MEMORY_EVICTED = Counter "tollgate_memory_evicted_total" ["side"]
        "Live entries that were evicted to make room; their usage remains in an overflow counter";
    MEMORY_EXPIRED = Counter "tollgate_memory_expired_total" ["side"]
        "Expired entries that were removed";
    MEMORY_DISCARDED = Counter "tollgate_memory_discarded_total" ["side"]
        "Charges that discarded invalid state: from an impossible future, or of another algorithm";
    MEMORY_OVERFLOW = Counter "tollgate_memory_overflow_total" ["side"]
        "Decisions by overflow counters, which subjects share while the memory store is full";
    MEMORY_COUNTERS = Gauge "tollgate_memory_overflow_counters" ["side"]
        "Overflow counters in use";
    MEMORY_LIMIT_ENTRIES = Gauge "tollgate_memory_limit_entries" ["side", "limit"]
        "Entries in the memory store of a limit of the policy";
    MEMORY_FULL = Counter "tollgate_memory_full_total" ["side"]
        "Charges, refunds and reservations that were refused because neither an entry nor an overflow counter was free";
    DENY_CACHE_HITS = Counter "tollgate_store_deny_cache_hits_total" ["side"]
        "Calls that the deny cache refused without a call to the store";
    FALLBACK_DECISIONS = Counter "tollgate_store_fallback_decisions_total" ["side"]
        "Calls that the local fallback decided because the store did not answer";
    LOCAL_UNITS = Counter "tollgate_store_fallback_units_total" ["side", "outcome"]
        "Units that the local fallback admitted, when the store answered again: charged, exceeded (the limit had none left), unknown (the charge had no answer), dropped (not recorded, the table was full)";
    UNANSWERED = Counter "tollgate_store_unanswered_total" ["side"]
        "Calls that neither the store nor the fallback answered";
    DEADLINE_MISSES = Counter "tollgate_store_deadline_misses_total" ["side"]
        "Calls that were aborted at the deadline of the decision";
    REFUND_FAILURES = Counter "tollgate_store_refund_failures_total" ["side"]
        "Charges of refused or aborted decisions that could not be refunded";
    DISCARDED = Counter "tollgate_store_discarded_total" ["side"]
        "Calls that discarded invalid stored state";
    LEASED = Counter "tollgate_store_quota_lease_decisions_total" ["side"]
        "Calls that a quota lease decided without a call to the store";
    LEASES = Counter "tollgate_store_quota_leases_total" ["side"]
        "Quota leases that this node took, one store call each";
    LEASED_UNITS = Counter "tollgate_store_quota_lease_units_total" ["side", "outcome"]
        "Units of quota leases: taken, returned unused, or lost until the end of their windows because no server accepted the return";
    CLOCK_READY = Gauge "tollgate_store_clock_ready" ["side"]
        "0 while the node is not ready because its clock and the clock of a server of the store differ by more than skew_max; otherwise 1";
    SHARD_UP = Gauge "tollgate_shard_up" ["side", "shard"]
        "1 while the primary of a shard answers; in a Redis Cluster, while every slot has a primary that answers";
    SHARD_PRIMARIES = Gauge "tollgate_shard_primaries" ["side", "shard"]
        "Reachable servers of a shard that report themselves as primary; if there is more than one, all nodes charge the same one";
    CLOCK_OFFSET = Gauge "tollgate_shard_clock_offset_seconds" ["side", "shard"]
        "How far the clock of a shard is ahead of the node's clock; in a Redis Cluster, of the primary that differs most; missing before the first reply";
    CLOCK_SKEW = Gauge "tollgate_shard_clock_skew_seconds" ["side", "shard"]
        "The proven difference between the clocks of a shard and of this node; in a Redis Cluster, the largest of all primaries";
    CLOCK_OVERRIDDEN = Gauge "tollgate_shard_clock_overridden" ["side", "shard"]
        "1 while the clock of a shard decides at this node, because the two differ too much or the policy says so";
    WINDOWS_LOST = Counter "tollgate_shard_windows_lost_total" ["side", "shard"]
        "Times that a shard lost counters, so that windows started from zero";
    REPLAYED_UNITS = Counter "tollgate_shard_replayed_units_total" ["side", "shard"]
        "Units that a failover lost and that this node charged again (failover replay)";
    REPLAYED_LIMITS = Counter "tollgate_shard_replayed_limits_total" ["side", "shard"]
        "Pairs of limit and subject that those units belong to";
    REPLAY_ABANDONED = Counter "tollgate_shard_replay_abandoned_limits_total" ["side", "shard"]
        "Pairs of limit and subject that could not be replayed in time";
    SHARD_DURATION = Histogram "tollgate_shard_duration_seconds" ["side", "shard"]
        "Time of a call to a shard, with the network and the wait for a batch; an aborted call counts until it was aborted";
    CIRCUIT = Gauge "tollgate_redis_circuit_breaker" ["side", "shard", "server", "state"]
        "1 for the current state of the circuit breaker of a server: closed, half_open (calls wait for a new connection), or open";
    CIRCUIT_OPENED = Counter "tollgate_redis_circuit_breaker_opened_total" ["side", "shard", "server"]
        "Times that the circuit breaker of a server opened";
    CLOCK_STEPS = Counter "tollgate_redis_clock_steps_total" ["side", "shard", "server"]
        "Times that the clock of a server jumped";
    CALLS = Counter "tollgate_redis_batches_total" ["side", "shard", "server"]
        "Batches that were sent to a server";
    JOBS = Counter "tollgate_redis_jobs_total" ["side", "shard", "server"]
        "Jobs in those batches";
    RETRIES = Counter "tollgate_redis_retries_total" ["side", "shard", "server"]
        "Jobs that were sent again after the server refused them as late, which proves that they did not run";
    OVERLOADED = Counter "tollgate_redis_overloaded_total" ["side", "shard", "server"]
        "Jobs that were rejected because the queue of the server was full";
    UNKNOWN = Counter "tollgate_redis_unknown_outcomes_total" ["side", "shard", "server"]
        "Jobs without an answer before their deadline: it is unknown whether they ran";
    MAP = Gauge "tollgate_shard_map_info" ["side", "version"]
        "The shard map of this node; always 1";
    MAP_NODES = Gauge "tollgate_shard_map_nodes" ["side", "map"]
        "Active nodes by their shard map: that of this node (current), the one before (previous), or another (other)";
    MAP_UNANSWERED = Gauge "tollgate_shard_map_unanswered_shards" ["side"]
        "Shards that did not report which nodes use them";
    REBALANCE_PHASE = Gauge "tollgate_rebalance_phase" ["side", "phase"]
        "1 for the current phase of a rebalance: dual_write, cutover or done; missing without a rebalance";
    REBALANCE_TRANSFERRED = Counter "tollgate_rebalance_transferred_total" ["side"]
        "Counters that this node transferred to their new shards";
    REBALANCE_MISSED_WRITES = Counter "tollgate_rebalance_missed_writes_total" ["side"]
        "Charges that a new shard did not answer during dual_write, and refunds that one of both shards did not answer";
    REBALANCE_TRANSFER_FAILURES = Counter "tollgate_rebalance_transfer_failures_total" ["side"]
        "Calls that found the old shard unreachable, so that the subjects started from zero on the new one";
    ROLLOUT_PERCENT = Gauge "tollgate_rollout_percent" []
        "The percentage of clients that the new store decides";
    ROLLOUT_TRANSFERRED = Counter "tollgate_rollout_transferred_total" []
        "Counters that were transferred with their clients from one store to the other";
    ROLLOUT_TRANSFER_FAILURES = Counter "tollgate_rollout_transfer_failures_total" []
        "Calls that found the other store unreachable, so that the clients started from zero";
    ROLLOUT_REFUND_FAILURES = Counter "tollgate_rollout_refund_failures_total" []
        "Charges over both stores that could not be refunded, or were refunded on one of them only";
    SHADOW_STORE_PERCENT = Gauge "tollgate_shadow_store_percent" []
        "The percentage of clients that are compared with the shadow store";
    SHADOW_STORE_COMPARED = Counter "tollgate_shadow_store_compared_charges_total" []
        "Charges that both the store and the shadow store answered";
    SHADOW_STORE_DIFFERENCES = Counter "tollgate_shadow_store_differences_total" ["kind"]
        "Compared charges with a different answer: in the decision, in the remaining units, or in the reset";
    SHADOW_STORE_MISSED = Counter "tollgate_shadow_store_missed_total" ["reason"]
        "Charges that were not compared: no answer (unanswered), a full queue (skipped), or a refund of unknown size (uncomparable)";
    MEMCACHED_CONNECTED = Gauge "tollgate_memcached_connections" ["side", "server"]
        "Open connections to a memcached server";
    MEMCACHED_CONNECTIONS_MAX = Gauge "tollgate_memcached_connections_max" ["side", "server"]
        "The number of connections that the node opens to the server";
    MEMCACHED_EVICTED = Counter "tollgate_memcached_evicted_total" ["side", "server"]
        "Items that a server evicted before they expired, of all its users";
    MEMCACHED_RESTARTS = Counter "tollgate_memcached_restarts_total" ["side", "server"]
        "Detected restarts of a server, which lose all items";
    MEMCACHED_FLUSHES = Counter "tollgate_memcached_flushes_total" ["side", "server"]
        "Detected flushes of a server, which lose all items";
    MEMCACHED_TORN = Counter "tollgate_memcached_torn_total" ["side", "server"]
        "Pairs of items of which one was missing too early, so that a window started from zero";
    MEMCACHED_CAS_CONFLICTS = Counter "tollgate_memcached_cas_conflicts_total" ["side", "server"]
        "Changes that were tried again because another node changed the item first";
    MEMCACHED_CONTENDED = Counter "tollgate_memcached_contended_total" ["side", "server"]
        "Calls that failed after too many of those conflicts";
    MEMCACHED_REFUND_FAILURES = Counter "tollgate_memcached_refund_failures_total" ["side", "server"]
        "Charges of refused or aborted decisions that could not be refunded";
    MEMCACHED_DURATION = Histogram "tollgate_memcached_duration_seconds" ["side", "server"]
        "Time of a call to a server with the network; an aborted call counts until it was aborted";
}
