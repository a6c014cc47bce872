//! A limit, as written.

use super::Cost;
use super::candidate::Candidate;
use super::choices::{
    AlgorithmName, AnchorName, LimitModeName, OnChangeName, OnExpiryName, UnitName,
};
use crate::decode::{Duration, Flag, OneOrMore, Percent, Text, Whole, keys};

keys! {
    /// A limit: how much, in what time, for whom.
    struct Limit as "a limit", requires "quota" {
        /// How it counts. By default `fixed_window`.
        algorithm: AlgorithmName,
        /// How much is admitted in a window; for `token_bucket` what refills in a window, for `concurrency` what may be in flight.
        quota: Whole,
        /// The time that the quota is for, such as `1h`. Every algorithm but `concurrency` needs it.
        window: Duration,
        /// Of a `token_bucket`: the most that can be saved up. By default the quota.
        burst: Whole,
        /// Of a `sliding_window`: the pieces it is cut into, at most 1,000 in a window. By default a sixtieth of the window.
        precision: Duration,
        /// Of a `fixed_window`: when it begins. By default `first_request`.
        anchor: AnchorName,
        /// Of `concurrency`: how long a permit is valid if its node does not renew it. A node renews the permits of running requests. By default `60s`.
        permit_ttl: Duration,
        /// The subjects that it counts apart: one counter for each combination of their values. Without any, everybody shares one counter.
        per: OneOrMore<Text>,
        /// What a request costs where its rule does not say: a whole number, or what of its answer tells. By default 1.
        cost: Cost,
        /// What it is measured in, as clients are told. By default `requests`, for `concurrency` `concurrent-requests`.
        unit: UnitName,
        /// Whether clients are told of it in headers. A refusal names it in any case. By default true.
        visible: Flag,
        /// Whether people may read its subjects: in the keys of a shared store, and at the administration's listener; credentials are hashed all the same. By default false.
        reveal: Flag,
        /// The name that clients see, which limits that stand for each other can share. By default the limit's own.
        resource: Text,
        /// Whether refused requests count, so that who keeps hammering stays out. By default false.
        count_refused: Flag,
        /// How far stored state may lie in the future, as clocks disagree, before it counts as none. By default `5s`.
        skew_max: Duration,
        /// What becomes of the counters when the limit is changed while they run. By default `keep`.
        on_change: OnChangeName,
        /// Where it is decided. By default `exact`.
        mode: LimitModeName,
        /// For how many of its subjects it refuses, such as `10%`, chosen by a hash that stays; for the others it counts and judges, and lets them pass. By default `100%`.
        enforce: Percent,
        /// Another definition that is tried on the same requests before it takes the limit's place; it refuses nobody.
        candidate: Candidate,
        /// The terms of reservations: units are reserved until the actual cost of a request is known. A `concurrency` limit has no `reservation`: its permits are the reservations.
        reservation: Reservation,
    }
}

keys! {
    /// How a limit may be reserved.
    struct Reservation as "terms of reservations" {
        /// The longest time that a reservation lasts. By default `5m`.
        max_duration: Duration,
        /// The most units that all reservations of a subject have together. By default as many as the limit has.
        max_units: Whole,
        /// What becomes of a reservation that nobody settles in time. By default `release`.
        on_expiry: OnExpiryName,
        /// Units that a settlement above its reservation may use beyond the quota; not of a `token_bucket` or a `two_bucket`. By default 0.
        overdraft: Whole,
    }
}
