//! Bounds of time.

pub(super) const DECISIONS: &[&[&str]] = &[
    &[
        "a decision",
        "{redis::batcher::DEFAULT_DEADLINE}, the store's `deadline`",
        "the store does not answer in time",
        "The fallback decides. [Rules in shadow mode](trying-limits.md) take the same time again, and \
         candidates again",
        "`Deadline::max_wait`; `DEFAULT_DEADLINE`",
    ],
    &[
        "the transfer of a subject's usage",
        "the slower store's `deadline`",
        "before its first decision at another store or shard, or under a changed limit that scales",
        "The window starts again, and the failed transfer is counted",
        "`with_transfer_entries` of `Rollout` and `Rebalance`",
    ],
    &[
        "the time to retry after a refusal of the full memory store",
        "{RETRY_WITHOUT_ROOM}",
        "the memory store has no room for a charge",
        "The request is refused, and the client should try again after this time",
        "`RETRY_WITHOUT_ROOM`",
    ],
    &[
        "a refusal that a node repeats without a call to the store",
        "until the reset, at most {MAX_DENY_TTL}; {DEFAULT_DENY_TTL} for limits with refunds",
        "a node has cached a refusal",
        "The next call is sent to the store",
        "`MAX_DENY_TTL`, `DEFAULT_DENY_TTL`, `DenyCache::max_stale_refusal`",
    ],
    &[
        "a reservation that is never settled",
        "`reservation.max_duration` after it was made or last extended",
        "the caller does not settle or release it",
        "It ends as the limit's `on_expiry` says; until then it holds its units",
        "`ReservationTerms::max`",
    ],
    &[
        "units held by a charge over several shards that is refused",
        "one round trip",
        "one shard refuses, and others admit",
        "The charges at the others are refunded",
        "`max_held_units`, `max_store_calls` bound the number of such charges",
    ],
    &[
        "the age of a status that a replica returns",
        "{LAG_MAX}",
        "a replica lags behind its primary",
        "The replica is not read from",
        "`LAG_MAX`",
    ],
    &[
        "the rise of load shedding",
        "{MAX_RISE} of the {PRIORITY_SPAN} steps of a priority every 100 ms",
        "the node is overloaded",
        "A priority is shed completely after 2 s",
        "`MAX_RISE`, `PRIORITY_SPAN`",
    ],
    &[
        "the fall of load shedding",
        "{MAX_FALL} of the {PRIORITY_SPAN} steps of a priority every 100 ms, {shed::RECOVERY_TIME} after the last rise \
         at the earliest",
        "the overload ends",
        "A priority is admitted again after 10 s",
        "`MAX_FALL`, `PRIORITY_SPAN`, `shed::RECOVERY_TIME`",
    ],
    &[
        "the wait of a decision while another request of the subject charges its unpaid costs",
        "{MAX_UNPAID_WAIT}",
        "a client's requests cost more than they reserved, and the client sends several at once",
        "The decision is made before these costs are charged. They stay unpaid",
        "`MAX_UNPAID_WAIT`",
    ],
    &[
        "the wait of a request in a rule's `queue`",
        "the rule's `wait`, at most {MAX_QUEUE_WAIT}",
        "the limit is reached",
        "The request is refused",
        "`MAX_QUEUE_WAIT`",
    ],
    &[
        "until the first request of a queue sees a permit that another node released",
        "{QUEUE_POLL}",
        "a request waits in a rule's `queue` for a permit",
        "The request is admitted",
        "`QUEUE_POLL`",
    ],
    &[
        "the permits of a dead node in the fleet's pool",
        "its `permit_ttl`, 60 s by default",
        "a node ends without releasing them",
        "The permits are free again",
        "`shed.fleet.permit_ttl`",
    ],
    &[
        "until every node applies an override",
        "{OVERRIDES_PERIOD} and one round trip, which may take at most {BLOB_DEADLINE}",
        "an override is set at one node",
        "A node whose store does not answer keeps its older overrides",
        "`OVERRIDES_PERIOD`, `BLOB_DEADLINE`",
    ],
    &[
        "a decision's wait for a JSON body that its policy reads",
        "{READ_AHEAD_TIME}",
        "the client sends the body slowly",
        "The rule's `unread` applies",
        "`READ_AHEAD_TIME` in `body/read_ahead.rs` of the proxy",
    ],
];

pub(super) const CLIENTS: &[&[&str]] = &[
    &[
        "the wait of a new client at a listener",
        "until idle connections close: the longest idle first, of those without a request for at least {EVICTABLE_AFTER}",
        "all connections of the listener are in use",
        "If no connection is idle, the client waits until a connection ends",
        "`LEAST_IDLE` of `tollgate-server`, which is `EVICTABLE_AFTER` of `tollgate-http`",
    ],
    &[
        "the wait of a new client at the proxy",
        "{EVICT_EVERY} and {EVICTION_LINGER}, if a connection has been idle for {EVICTABLE_AFTER}",
        "all of `--max-connections` are in use",
        "If no connection is idle, the client waits until one has been idle that long or ends",
        "`EVICT_EVERY`, `EVICTION_LINGER`, `EVICTABLE_AFTER`",
    ],
    &[
        "a slow request body, or a slow reader of a response at the proxy",
        "{LEAST_RATE_GRACE}, and 64 s more for the first {BURST_BYTES:KiB}",
        "a client sends or reads more slowly than {LEAST_BYTES_PER_SECOND:KiB}/s",
        "The connection closes, or the HTTP/2 stream is reset",
        "`LEAST_RATE_GRACE`, `LEAST_BYTES_PER_SECOND`, `BURST_BYTES`",
    ],
    &[
        "an HTTP/2 response that is ready",
        "{MAX_WRITE_STALL} at a listener, and not longer than a connection may be idle; {Timeouts::write_idle} at the proxy",
        "the client reads nothing of it",
        "The stream is reset",
        "`MAX_WRITE_STALL`; `Timeouts::write_idle`",
    ],
    &[
        "the last request of a silent HTTP/1.1 client",
        "{http_connection::LAST_REQUEST}; at the proxy at most half of `--drain-timeout`",
        "the process ends",
        "The connection closes",
        "`LAST_REQUEST`",
    ],
    &[
        "the TLS handshake of a client of the proxy",
        "{Timeouts::tls_handshake}",
        "the client does not complete it",
        "The connection closes",
        "`Timeouts::tls_handshake`",
    ],
];

pub(super) const OPERATION: &[&[&str]] = &[
    &[
        "a page of [subjects](admin.md#listing-subjects)",
        "{LIST_DEADLINE}, and {LIST_STEPS} steps of {KEYS_PER_LIST_STEP} keys",
        "the store has more subjects",
        "The page ends, and the next one continues there",
        "`LIST_DEADLINE`, `LIST_STEPS`, `KEYS_PER_LIST_STEP`",
    ],
    &[
        "the addresses of an upstream's host name",
        "{RESOLVE_EVERY}; {RESOLVE_PAUSE} if an address could not be reached",
        "the addresses are that old",
        "The name is looked up again",
        "`RESOLVE_EVERY`, `RESOLVE_PAUSE`",
    ],
    &[
        "the pause of an upstream's address",
        "{health::FIRST_PAUSE}, then twice as long each time, at most {health::LONGEST_PAUSE}",
        "{health::FAILURES} failures in a row",
        "The address is set aside; never the last address in use",
        "`FAILURES`, `FIRST_PAUSE`, `LONGEST_PAUSE`",
    ],
    &[
        "`tollgate health`",
        "2 s",
        "the process does not answer",
        "It reports a failure",
        "its own deadline",
    ],
    &[
        "a simulation's wait for another one at the admin listener",
        "0",
        "{callbacks::AT_ONCE} simulation is running",
        "503",
        "`AT_ONCE` in `http/callbacks.rs`",
    ],
];
