//! The keys `store.rollout` and `store.shadow`: two stores at once.

use super::{Memcached, Memory, Redis};
use crate::decode::{Percent, choices, keys};
use crate::settings::OnMove;

keys! {
    /// One store decides for a percentage of all clients, another one for the rest. For moving to
    /// another store while traffic runs.
    struct Rollout as "a rollout", requires "percent", "from", "to" {
        /// The percentage of clients that `to` decides for, `0%` to `100%`. Every node selects the
        /// same clients. If the percentage grows, more clients move and none moves back. A change
        /// needs no restart.
        percent: Percent,
        /// The treatment of a client's counters when the client moves. By default `transfer`.
        on_move: OnMoveName,
        /// The store that clients move from.
        from: Side,
        /// The store that clients move to.
        to: Side,
    }
}

keys! {
    /// One store decides. A second store evaluates the same requests in the background, and every
    /// difference is counted. For testing a store before a move.
    struct Shadow as "a shadow", requires "store", "shadow_store" {
        /// The percentage of clients whose decisions are compared, `0%` to `100%`. By default
        /// `100%`. A change needs no restart.
        percent: Percent,
        /// The store that decides.
        store: Side,
        /// The store that is compared: its decisions are counted and not obeyed.
        shadow_store: Side,
    }
}

keys! {
    /// One of two stores: exactly one of these kinds.
    struct Side as "one of two stores" {
        /// The counters are in the memory of this process, with bounds.
        memory: Memory,
        /// The counters are in Redis or Valkey, and all nodes share them.
        redis: Redis,
        /// The counters are in memcached, and all nodes share them.
        memcached: Memcached,
    }
}

choices! {
    /// The treatment of a client's counters when the client moves from one store to the other.
    struct OnMoveName(OnMove) as "an on_move mode" {
        /// The counters are transferred: used units stay used, and the current window continues.
        "transfer" => OnMove::Transfer,
        /// The counters start from zero, so a client gets one additional window for each move.
        "reset" => OnMove::Reset,
    }
}
