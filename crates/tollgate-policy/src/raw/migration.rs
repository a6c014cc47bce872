//! Two stores at once, while limits move from one to the other, as written.

use super::{Memcached, Memory, Redis};
use crate::decode::{Percent, keys, words};
use crate::settings::OnMove;

keys! {
    /// Some percent of all clients are decided by one store, the rest by another: for moving between them while traffic runs.
    struct Rollout as "a rollout", requires "percent", "from", "to" {
        /// How many clients are decided by `to`, `0%` to `100%`. The same clients on every node; more of them when it grows, and nobody moves back. A change of it takes no restart.
        percent: Percent,
        /// What happens to the counters of a client that moves. By default `transfer`.
        on_move: OnMoveName,
        /// The store that clients leave.
        from: Side,
        /// The store that they go to.
        to: Side,
    }
}

keys! {
    /// One store decides, another one is asked too, off the callers' way, and every difference is counted: for knowing a store before moving there.
    struct Shadow as "a shadow", requires "store", "shadow_store" {
        /// How many clients are compared, `0%` to `100%`. By default `100%`. A change of it takes no restart.
        percent: Percent,
        /// The store that decides.
        store: Side,
        /// The store that is compared: its decisions are counted and not obeyed.
        shadow_store: Side,
    }
}

keys! {
    /// One of two stores: in exactly one of these.
    struct Side as "one of two stores" {
        /// In the memory of this process, and how much of it.
        memory: Memory,
        /// In Redis or Valkey, shared by all nodes.
        redis: Redis,
        /// In memcached, shared by all nodes.
        memcached: Memcached,
    }
}

words! {
    /// What happens to the counters of a client that moves from one store to the other.
    struct OnMoveName(OnMove) as "an on_move mode" {
        /// They move along: what was used stays used, and the current window continues.
        "transfer" => OnMove::Transfer,
        /// They start from zero: one more window, once for each move.
        "reset" => OnMove::Reset,
    }
}
