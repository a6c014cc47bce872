//! The level of load shedding on a node, and how the level rises and falls.

use tollgate_core::policy::Priority;
use tollgate_core::{Millis, Timestamp};

/// The number of levels for each priority. At the highest level of a priority, all requests of this
/// priority and of lower priorities are shed, and no request of a higher priority.
pub const PRIORITY_SPAN: u32 = 1_000;

/// The level at which everything is shed.
pub const MAX_LEVEL: u32 = PRIORITY_SPAN * Priority::ALL.len() as u32;

/// The interval at which the level is updated.
pub const TICK: Millis = Millis::new(100);

/// The most by which the level rises in a [`TICK`]: all requests of a priority are shed after 2 s.
pub const MAX_RISE: u32 = 50;

/// The most by which the level falls in a [`TICK`]: all requests of a priority are admitted again
/// after 10 s.
pub const MAX_FALL: u32 = 10;

/// The time for which the load must have been low before the level falls.
pub const RECOVERY_TIME: Millis = Millis::from_secs(1);

/// The load, in thousandths of its bound, above which the level rises.
pub const OVERLOAD: u32 = 1_000;

/// The load, in thousandths of its bound, below which the level falls. Between [`RECOVERED`] and
/// [`OVERLOAD`] the level does not change.
pub const RECOVERED: u32 = 800;

/// The level of shedding, from 0 to [`MAX_LEVEL`]. Each [`Priority`] has a range of
/// [`PRIORITY_SPAN`] levels, and the lowest priority has the lowest range. No request of a priority
/// is shed before all requests of the next lower priority are shed.
///
/// The level changes slowly, even if the load changes fast:
///
/// - the level rises by at most [`MAX_RISE`] in a [`TICK`], and only while the load is above
///   [`OVERLOAD`];
/// - the level falls by at most [`MAX_FALL`] in a tick, and only once the load was below
///   [`RECOVERED`] for [`RECOVERY_TIME`] without a break;
/// - so the level turns from rising to falling at most once in [`RECOVERY_TIME`], and a priority
///   that was shed completely returns over [`PRIORITY_SPAN`] ÷ [`MAX_FALL`] ticks.
///
/// A `ShedLevel` reads no clock: the caller passes `now`. If the clock jumps ahead, the level rises
/// by at most [`MAX_RISE`]. If the clock is set back, the current tick begins again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShedLevel {
    level: u32,
    /// The start of the current tick.
    ticked_at: Timestamp,
    /// The time since which the load is low; `None` if the load is not low.
    eased_since: Option<Timestamp>,
    /// The debt of each priority, in thousandths of a request. Each request adds the share of
    /// requests to shed to the debt. Whenever the debt reaches a whole request, one request is shed
    /// and subtracted from the debt, so shedding needs no randomness.
    owed: [u32; Priority::ALL.len()],
}

impl ShedLevel {
    /// Updates the level at `now`. `load` is the node's load, in thousandths of its bound.
    pub fn follow(&mut self, now: Timestamp, load: u32) {
        if now < self.ticked_at {
            (self.ticked_at, self.eased_since) = (now, None);
        }
        self.eased_since = match self.eased_since {
            _ if load >= RECOVERED => None,
            since => since.or(Some(now)),
        };
        let ticks = now.since(self.ticked_at).get() / TICK.get();
        if ticks == 0 {
            return;
        }
        self.ticked_at = self.ticked_at.after(Millis::new(ticks.saturating_mul(TICK.get())));
        if load > OVERLOAD {
            // The load in ticks without an update is unknown, so one update raises the level by at
            // most `MAX_RISE`.
            self.level = (self.level + MAX_RISE).min(MAX_LEVEL);
        } else if let Some(since) = self.eased_since {
            let calm = now.since(since).get().saturating_sub(RECOVERY_TIME.get()) / TICK.get();
            let fall = ticks.min(calm).saturating_mul(u64::from(MAX_FALL));
            self.level = self.level.saturating_sub(u32::try_from(fall).unwrap_or(u32::MAX));
        }
    }

    /// Decides whether the next request of `priority` is shed. Each call counts as one request.
    pub fn sheds(&mut self, priority: Priority) -> bool {
        let share = self.share(priority);
        let owed = &mut self.owed[priority as usize];
        *owed = if share == 0 { 0 } else { *owed + share };
        let is_shed = *owed >= PRIORITY_SPAN;
        if is_shed {
            *owed -= PRIORITY_SPAN;
        }
        is_shed
    }

    /// Returns the share of the requests of `priority` that is shed, in thousandths.
    #[must_use]
    pub fn share(&self, priority: Priority) -> u32 {
        self.level.saturating_sub(begins(priority)).min(PRIORITY_SPAN)
    }

    /// Returns the time until some requests of `priority` are admitted again, if all are shed now
    /// and the load is low from now on. Returns zero if some requests of `priority` are admitted
    /// now.
    #[must_use]
    pub fn passes_after(&self, priority: Priority) -> Millis {
        if self.share(priority) < PRIORITY_SPAN {
            return Millis::ZERO;
        }
        let above = self.level - begins(priority) - PRIORITY_SPAN + 1;
        // The tick that first observes the low load does not lower the level yet.
        let ticks = above.div_ceil(MAX_FALL) + 1;
        Millis::new(RECOVERY_TIME.get() + u64::from(ticks) * TICK.get())
    }

    /// Returns the current level, from 0 to [`MAX_LEVEL`].
    #[must_use]
    pub const fn get(&self) -> u32 {
        self.level
    }
}

/// Returns the level above which some requests of `priority` are shed.
const fn begins(priority: Priority) -> u32 {
    PRIORITY_SPAN * priority as u32
}
