//! The key `limits`: one limit.

use super::Cost;
use super::amount::Amount;
use super::answers::RefuseAnswer;
use super::billing_day::BillingDay;
use super::candidate::Candidate;
use super::choices::{
    AlgorithmName, AnchorName, LimitModeName, OnChangeName, OnExpiryName, UnitName, WeekdayName,
};
use crate::decode::{
    Duration, Flag, Integer, OneOrMore, Percent, StatusRange, Text, WindowLength, Zone, keys,
};

keys! {
    /// A limit: how many units, in which time, for which subject.
    struct Limit as "a limit", requires "quota" {
        /// The algorithm. By default `fixed_window`.
        algorithm: AlgorithmName,
        /// The units that are admitted in a window. For `token_bucket`: the units that are refilled
        /// in a window. For `concurrency`: the most requests in flight. A number, or a number for each
        /// value of a subject: `{ by: plan, values: { free: 60, pro: 6_000 }, default: 30 }`.
        quota: Amount,
        /// The time that the quota is for, such as `1h`. For `fixed_window` also `day`, `week`,
        /// `month` or `year`: windows of the calendar in `timezone`. Required for every algorithm
        /// except `concurrency`.
        window: WindowLength,
        /// For calendar windows: the time zone in which they begin, an IANA name such as
        /// `Europe/Berlin`. By default `UTC`.
        timezone: Zone,
        /// For `window: week`: the day on which the week begins. By default `monday`.
        week_start: WeekdayName,
        /// For `window: month`: the day of the month on which a window begins, 1 to 31. In a
        /// shorter month, the window begins on the last day. A number, or the value of a subject:
        /// `{ by: renewal, default: 1 }`. By default 1.
        billing_day: BillingDay,
        /// For `token_bucket`: the most units that can be saved up, as a number or by subject like
        /// `quota`. By default the quota.
        burst: Amount,
        /// For `sliding_window`: the length of the blocks that the window is divided into, at most
        /// 1,000 blocks. By default a sixtieth of the window.
        precision: Duration,
        /// For `fixed_window`: when a window begins. By default `first_request`.
        anchor: AnchorName,
        /// For `concurrency`: how long a permit is valid if its node does not renew it. A node
        /// renews the permits of running requests. By default `60s`.
        permit_ttl: Duration,
        /// The subjects of the limit. The limit keeps one counter for each combination of their
        /// values. Without subjects, all clients share one counter.
        per: OneOrMore<Text>,
        /// The cost of a request if its rule does not set one: a whole number, or a source in the
        /// response. By default 1.
        cost: Cost,
        /// The unit that clients see. By default `requests`, for `concurrency`
        /// `concurrent-requests`.
        unit: UnitName,
        /// Whether response headers contain the limit. A refusal names it in any case. By default
        /// true.
        visible: Flag,
        /// Whether the limit's subjects are readable in the keys of a shared store and at the admin
        /// listener. Credentials are always hashed. By default false.
        reveal: Flag,
        /// The name that clients see. Limits that replace each other can share it. By default the
        /// limit's own name.
        resource: Text,
        /// Whether refused requests count, so a client that keeps retrying stays blocked. By
        /// default false.
        count_refused: Flag,
        /// The responses that the limit counts. By default all. A request is charged on arrival, and
        /// refunded unless its response counts, so concurrent requests never exceed the quota.
        count: Count,
        /// The response to requests that the limit refuses. By default the response of the rule, or
        /// of `answers`.
        refuse: RefuseAnswer,
        /// How far stored times may be in the future, because clocks differ, before the stored
        /// state is discarded. By default `5s`. With memcached at least `2250ms`.
        skew_max: Duration,
        /// The treatment of existing counters when the limit is changed. By default `keep`.
        on_change: OnChangeName,
        /// What decides charges on the limit: the store, or the nodes with quota leases. By default `exact`.
        mode: LimitModeName,
        /// The share of its subjects for which the limit is enforced, such as `10%`. A stable hash
        /// selects these subjects. For other subjects the limit counts and evaluates, but never
        /// refuses a request. By default `100%`.
        enforce: Percent,
        /// A second definition to evaluate on the same requests before it replaces the limit. The
        /// candidate never refuses a request.
        candidate: Candidate,
        /// The settings of reservations: units that are reserved until the actual cost of a request
        /// is known. A `concurrency` limit has no `reservation`: its permits are the reservations.
        reservation: Reservation,
    }
}

keys! {
    /// The responses that a limit counts.
    struct Count as "a count", requires "status" {
        /// The statuses that count, such as `[401, 403, 5xx]` or `400-499`.
        status: OneOrMore<StatusRange>,
    }
}

keys! {
    /// The settings of a limit's reservations.
    struct Reservation as "reservation settings" {
        /// The longest time until a reservation expires. By default `5m`.
        max_duration: Duration,
        /// The most units that all reservations of a subject may have together. By default the
        /// limit's capacity.
        max_units: Integer,
        /// The treatment of a reservation that expires before it is settled. By default `release`.
        on_expiry: OnExpiryName,
        /// The units beyond the quota that a settlement may use if the cost is higher than the
        /// reservation. Not for `token_bucket` and `two_bucket`. By default 0.
        overdraft: Integer,
    }
}
