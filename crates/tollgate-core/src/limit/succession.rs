//! A limit in the place of another one whose counters it takes over in proportion.

use alloc::sync::Arc;

use super::{Limit, OnChange};
use crate::charge::{Ask, ChargeId};
use crate::decide::{Cell, assess, decide};
use crate::limit::{Algorithm, Cost};
use crate::reading::Found;
use crate::time::{MAX_EXACT, Timestamp};

/// Whose place a limit took, and until when counters of then may still say something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Succession {
    former: Arc<Limit>,
    until: Timestamp,
}

impl Limit {
    /// This limit from `now` on, where `old` was of its name: with [`OnChange::Scale`] it takes
    /// over what was used there, and with any other nothing.
    #[must_use]
    pub fn succeeding(mut self, old: &Self, now: Timestamp) -> Self {
        if self.on_change != OnChange::Scale || self.name != old.name {
            return self;
        }
        self.succession = if self.state_digest == old.state_digest {
            // The file was read anew for something else.
            old.succession.clone()
        } else {
            let until = now.after(old.window()).after(old.believed_ahead());
            let former = Self { succession: None, candidate: None, ..old.clone() };
            Some(Succession { former: Arc::new(former), until })
        };
        self
    }

    /// The limit whose counters this one takes over at `now`, if there is one.
    #[inline]
    #[must_use]
    pub fn former(&self, now: Timestamp) -> Option<&Self> {
        let succession = self.succession.as_ref()?;
        (now < succession.until).then_some(&*succession.former)
    }

    /// What this limit begins with where `cell` is what `former` counted: the same part of the
    /// capacity is used, rounded up to whole units. `None` where nothing was used or `cell` counts
    /// as none, and for requests in flight, which hold their leases where they were taken.
    ///
    /// A fixed window ends when the old one was to end, and never later than one that opens now. Else
    /// it is as if that much were used now.
    #[must_use]
    pub fn scaled(&self, cell: &Cell, former: &Self, now: Timestamp) -> Option<Cell> {
        let in_flight = |limit: &Self| matches!(limit.algorithm, Algorithm::Concurrency(_));
        let reading = assess(Some(cell), former, Cost::PEEK, now);
        if in_flight(self) || in_flight(former) || reading.found != Found::State {
            return None;
        }
        let used = part(reading.used, former.capacity(), self.capacity());
        let cost = Cost::new(used).filter(|cost| *cost != Cost::PEEK)?;
        let take = Ask::Take { cost, id: ChargeId::default() };
        let mut cell = decide(None, self, take, now).1?;
        if let Cell::FixedWindow(window) = &mut cell {
            window.resets_at = window.resets_at.min(reading.whole_at);
        }
        Some(cell)
    }
}

/// As much of `to` as `used` is of `from`, rounded up, and at most all of it.
fn part(used: u64, from: u64, to: u64) -> u64 {
    let scaled = (u128::from(used) * u128::from(to)).div_ceil(u128::from(from.max(1)));
    u64::try_from(scaled).unwrap_or(MAX_EXACT).min(to)
}
