//! The reference model of a token bucket: a list of all events, which is replayed for every
//! request.
//!
//! Levels are in fractions of a token, called shares: one token is `window` shares, and the bucket
//! gains `quota` shares in each millisecond.

use tollgate_core::{Algorithm, ChargeId, MAX_EXACT, algo};

use super::account::Account;

#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    rate: Rate,
    window: u128,
    skew: u64,
    events: Vec<Event>,
}

/// The numbers of a bucket that can differ between the charges of one subject.
#[derive(Clone, Copy, Debug)]
struct Rate {
    quota: u128,
    burst: u128,
}

#[derive(Clone, Debug)]
struct Event {
    at: u64,
    /// The rate of the operation. Until the event, tokens arrive by this rate.
    rate: Rate,
    happened: EventKind,
}

#[derive(Clone, Debug)]
enum EventKind {
    Charged {
        id: ChargeId,
        shares: u128,
        /// The latest millisecond at which the refilled tokens still fit into the bucket, if no
        /// event follows this charge.
        brim_at: u64,
    },
    Refunded {
        shares: u128,
    },
}

impl Rate {
    fn of(of: &algo::TokenBucket) -> Self {
        Self { quota: of.quota().into(), burst: of.burst().into() }
    }
}

impl TokenBucket {
    pub(super) fn new(of: &algo::TokenBucket, skew: u64) -> Self {
        let window = of.window().get().into();
        Self { rate: Rate::of(of), window, skew, events: Vec::new() }
    }

    fn full(&self) -> u128 {
        self.rate.burst * self.window
    }

    fn newest(&self) -> u64 {
        self.events.iter().map(|event| event.at).max().unwrap_or(0)
    }

    /// Returns the time of the decision: `at`, or the time of the latest event if that event
    /// happened after `at`.
    fn moment(&self, seen: u64, at: u64) -> u64 {
        if self.is_impossible(seen) { at } else { self.newest().max(at) }
    }

    /// Returns the shares in the bucket.
    fn level(&self, seen: u64, at: u64) -> u128 {
        let Some(first) = self.events.first().filter(|_| !self.is_impossible(seen)) else {
            return self.full();
        };
        let arrive = |rate: Rate, level: u128, from: u64, to: u64| {
            (level + rate.quota * u128::from(to - from)).min(rate.burst * self.window)
        };
        let (mut level, mut since) = (first.rate.burst * self.window, first.at);
        for event in &self.events {
            level = arrive(event.rate, level, since, event.at);
            since = event.at;
            match event.happened {
                EventKind::Charged { shares, .. } => level -= shares,
                EventKind::Refunded { shares } => level += shares,
            }
        }
        arrive(self.rate, level, since, self.moment(seen, at))
    }

    fn brim_at(&self, now: u64) -> u64 {
        let missing = self.full() - self.level(now, now);
        (self.moment(now, now) + millis(missing / self.rate.quota)).min(MAX_EXACT)
    }
}

impl Account for TokenBucket {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn follow(&mut self, algorithm: &Algorithm) {
        if let Algorithm::TokenBucket(of) = algorithm {
            self.rate = Rate::of(of);
        }
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        let whole_tokens = self.level(seen, at) / self.window;
        u64::try_from(self.rate.burst - whole_tokens).expect("at most the burst")
    }

    fn full_reset_at(&self, now: u64) -> u64 {
        let missing = self.full() - self.level(now, now);
        self.moment(now, now) + millis(missing.div_ceil(self.rate.quota))
    }

    fn position(&self, now: u64) -> u64 {
        self.brim_at(now)
    }

    fn is_impossible(&self, now: u64) -> bool {
        self.newest() > now + self.skew
    }

    /// Records a charge. If a refused charge counts, the charge takes only the available tokens,
    /// because the bucket is never overdrawn.
    fn record(&mut self, now: u64, units: u64, id: ChargeId) {
        let at = self.moment(now, now);
        if self.is_impossible(now) {
            self.events.clear();
        }
        let shares = (u128::from(units) * self.window).min(self.level(now, now));
        self.events.push(Event {
            at,
            rate: self.rate,
            happened: EventKind::Charged { id, shares, brim_at: 0 },
        });
        let after = self.brim_at(now);
        if let Some(Event { happened: EventKind::Charged { brim_at, .. }, .. }) =
            self.events.last_mut()
        {
            *brim_at = after;
        }
    }

    /// Refunds units. Tokens that were refilled since the charge are not refunded. The refund is at
    /// most the number of tokens that would still have been refilled until the bucket is full, and
    /// at most the number of missing tokens.
    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64 {
        let at = self.moment(now, now);
        let taken = self.events.iter().find_map(|event| match event.happened {
            EventKind::Charged { id: own, shares, brim_at } if own == id => Some((shares, brim_at)),
            _ => None,
        });
        let Some((taken, brim_at)) = taken else { return 0 };
        let arriving = self.rate.quota * u128::from(brim_at.saturating_sub(at));
        let missing = self.full() - self.level(now, now);
        let requested = u128::from(units) * self.window;
        let shares = requested.min(taken).min(arriving).min(missing);
        if shares > 0 {
            self.events.push(Event {
                at,
                rate: self.rate,
                happened: EventKind::Refunded { shares },
            });
        }
        millis(shares.div_ceil(self.window))
    }

    fn expires_at(&self) -> u64 {
        self.full_reset_at(self.newest())
    }
}

fn millis(number: u128) -> u64 {
    u64::try_from(number).expect("a policy's products stay below 2^53")
}
