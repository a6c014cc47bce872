//! Generates random traces from a seed. Many values are deliberately at the bounds of their ranges.

use tollgate_core::{Algorithm, Cost, Deduplication, MAX_EXACT, Millis, Timestamp};

use super::limits::{random_limit, with_random_hold};
use super::{Call, LimitCharge, Op, Trace};
use crate::random::Random;

/// The number of operations in one trace.
const OPS: usize = 48;
/// The largest number of limits in one trace.
const LIMITS: u64 = 4;
/// The number of subjects in one trace.
const SUBJECTS: u64 = 2;
/// The number of quotas of each limit in a trace with plans.
const PLANS: usize = 3;
/// The quotas of plans.
const QUOTAS: [u64; 6] = [1, 2, 3, 5, 10, 60];
/// The longest time, in milliseconds, by which the time of a call is earlier than the latest time
/// of the trace. Stores accept calls with such a time.
const STEP_BACK: u64 = 3_000;
/// The `skew_max` of the limits in traces with reservations. A trace runs for a shorter time than
/// this even on a slow machine, so a server, which deletes expired keys by its own clock, keeps the
/// keys during the trace.
const SLOW: Millis = Millis::from_secs(60);

impl Trace {
    /// Returns the trace of `seed`.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = random.within(1..=LIMITS);
        let limits: Vec<_> = (0..count)
            .map(|index| {
                let kind = random.within(0..=7);
                random_limit(&mut random, kind, &format!("limit{index}"))
            })
            .collect();
        let mut now = random.one_of(&[1_000_000, 1_700_000_000_000, MAX_EXACT / 4]);
        let mut latest = now;
        let ops = (0..OPS)
            .map(|_| {
                now = next_moment(&mut random, now, &limits).max(latest - STEP_BACK);
                latest = latest.max(now);
                let call = random_call(&mut random, &limits);
                Op { now: Timestamp::from_millis(now), call }
            })
            .collect();
        Self { seed, limits, ops }
    }

    /// Returns the trace of `seed` with reservation terms, and with reservations among its calls.
    #[must_use]
    pub fn reserving(seed: u64) -> Self {
        let mut trace = Self::random(seed);
        let mut random = Random::new(!seed);
        for limit in &mut trace.limits {
            // A server deletes expired keys by its own clock. With a large skew, the server keeps
            // the keys during the trace, even on a slow machine.
            let patient = limit.clone().with_skew_max(SLOW);
            *limit = with_random_hold(&mut random, patient);
        }
        for op in &mut trace.ops {
            if random.chance(40) {
                op.call = random_reservation(&mut random, &trace.limits);
            }
        }
        trace
    }

    /// Returns this trace with several quotas for each limit, as plans have. All quotas of a limit
    /// share its counters. Each part of a charge or reservation uses one of the quotas.
    ///
    /// A token bucket has only one quota. A bucket that is full under one plan is full under every
    /// plan, but it depends on the store when it deletes such a bucket.
    #[must_use]
    pub fn with_plans(mut self) -> Self {
        let mut random = Random::new(self.seed.rotate_left(32));
        let limits = self.limits.len();
        for _ in 1..PLANS {
            for index in 0..limits {
                let (limit, quota) = (&self.limits[index], random.one_of(&QUOTAS));
                let limit = match limit.algorithm() {
                    Algorithm::TokenBucket(_) => limit.clone(),
                    _ => limit.with_quota(quota, None).expect("a small quota"),
                };
                self.limits.push(limit);
            }
        }
        for op in &mut self.ops {
            if let Call::Charge(charges) | Call::Peek(charges) | Call::Reserve(charges, _) =
                &mut op.call
            {
                for charge in charges {
                    let plan = random.within(0..=PLANS as u64 - 1) as usize;
                    charge.limit += plan * limits;
                }
            }
        }
        self
    }

    /// Returns the trace of `seed`, changed to use both subjects in every charge, peek and
    /// reservation. A call with a single part gets a second part on the same limit. On stores that
    /// distribute subjects, most calls then span two servers.
    #[must_use]
    pub fn spanning(seed: u64) -> Self {
        let mut trace = Self::random(seed);
        for op in &mut trace.ops {
            let (Call::Charge(charges) | Call::Peek(charges) | Call::Reserve(charges, _)) =
                &mut op.call
            else {
                continue;
            };
            if let [alone] = charges[..] {
                charges.push(alone);
            }
            for (index, charge) in charges.iter_mut().enumerate() {
                charge.subject = (charge.subject + index as u8) % SUBJECTS as u8;
            }
        }
        trace
    }
}

/// Returns the next time of the trace: mostly the same millisecond, the next millisecond, or a
/// millisecond near the end of a window.
fn next_moment(random: &mut Random, now: u64, limits: &[tollgate_core::Limit]) -> u64 {
    let limit = &limits[random.within(0..=limits.len() as u64 - 1) as usize];
    let window = limit.window().get().min(100_000);
    match random.within(0..=11) {
        0..=4 => now,
        5 => now + 1,
        6 => now + random.within(0..=window),
        7 => now - now % window + window - 1,
        8 => now - now % window + window,
        9 => now + window,
        10 => now + window.saturating_sub(1),
        _ => now - random.within(1..=STEP_BACK.min(window)),
    }
}

fn random_call(random: &mut Random, limits: &[tollgate_core::Limit]) -> Call {
    let back = random.one_of(&[0, 0, 0, 1, 1, 2, 3, 5, 8]);
    match random.within(0..=39) / 4 {
        0 => Call::Refund(back, Deduplication::Unneeded),
        1 | 2 => Call::Refund(back, Deduplication::ById),
        3 => Call::Renew(back),
        4 => Call::Peek(random_charges(random, limits)),
        5 if random.within(0..=3) == 0 => Call::Reset(random_charges(random, limits)[0]),
        _ => Call::Charge(random_charges(random, limits)),
    }
}

/// Returns a random reservation, extension or settlement. Some reservations expire before they are
/// settled.
fn random_reservation(random: &mut Random, limits: &[tollgate_core::Limit]) -> Call {
    let back = random.one_of(&[0, 0, 0, 1, 1, 2, 3, 5]);
    let duration = random.one_of(&[0, 1, 2, 10, 60, 100, 1_000, 100_000]);
    match random.within(0..=6) {
        0..=2 => Call::Reserve(random_charges(random, limits), duration),
        3 => Call::Extend(back, duration),
        _ => Call::Settle(back, random.one_of(&[0, 0, 40, 50, 100, 100, 150, 300])),
    }
}

/// Returns the parts of a random charge, with at most one part for each limit and subject.
fn random_charges(random: &mut Random, limits: &[tollgate_core::Limit]) -> Vec<LimitCharge> {
    let first = random.within(0..=limits.len() as u64 - 1) as usize;
    let subject = random.within(0..=SUBJECTS - 1) as u8;
    let count = random.within(1..=limits.len() as u64) as usize;
    (0..count)
        .map(|offset| {
            let limit = (first + offset) % limits.len();
            LimitCharge { limit, subject, cost: random_cost(random, limits[limit].capacity()) }
        })
        .collect()
}

fn random_cost(random: &mut Random, capacity: u64) -> Cost {
    let units = match random.within(0..=11) {
        0 => 0,
        1 => capacity,
        2 => capacity.saturating_add(1).min(MAX_EXACT),
        3 => capacity - 1,
        4 => capacity / 2 + 1,
        5 => random.one_of(&[MAX_EXACT, MAX_EXACT - 1, 2]),
        6 => random.within(1..=capacity.min(5)),
        _ => 1,
    };
    Cost::new(units).unwrap_or(Cost::ONE)
}
