//! How much a worker sheds: the law by which that rises and falls.

use tollgate_core::policy::Priority;
use tollgate_core::{Millis, Timestamp};

/// The level at which the whole of one priority is shed, and none of the next.
pub const PRIORITY_SPAN: u32 = 1_000;

/// The level at which everything is shed.
pub const MAX_LEVEL: u32 = PRIORITY_SPAN * Priority::ALL.len() as u32;

/// How often the level is looked at.
pub const TICK: Millis = Millis::new(100);

/// How much the level rises in a tick: a priority is shed whole after 2 s.
pub const MAX_RISE: u32 = 50;

/// How much it falls in a tick: a priority that was shed whole is back after 10 s.
pub const MAX_FALL: u32 = 10;

/// How long the load must have been low before the level falls.
pub const RECOVERY_TIME: Millis = Millis::from_secs(1);

/// The load, in thousandths of what is bearable, above which the level rises.
pub const OVERLOAD: u32 = 1_000;

/// The load below which it falls. In between it stays where it is.
pub const RECOVERED: u32 = 800;

/// How much is shed, from nothing to [`MAX_LEVEL`]: [`PRIORITY_SPAN`] for each [`Priority`], the lowest
/// first, so that nothing of a priority is shed before all of the one below is.
///
/// Slowly in and slowly out, whatever the load does:
///
/// - it rises by at most [`MAX_RISE`] in a [`TICK`], and only while the load is above [`OVERLOAD`];
/// - it falls by at most [`MAX_FALL`] in a tick, and only once the load was below [`RECOVERED`] for
///   [`RECOVERY_TIME`] without a break;
/// - so it turns from rising to falling at most once in [`RECOVERY_TIME`], and a priority that was shed whole
///   comes back over [`PRIORITY_SPAN`] ÷ [`MAX_FALL`] ticks.
///
/// No clock is read: the caller passes `now`. A clock that jumps ahead raises it by one step at
/// most, and one that is set back costs the tick under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShedLevel {
    level: u32,
    /// The beginning of the tick under way.
    ticked_at: Timestamp,
    /// Since when the load is low.
    eased_since: Option<Timestamp>,
    /// What each priority owes, in thousandths of a request: a share of requests is shed without
    /// chance, one whenever a whole one is owed.
    owed: [u32; Priority::ALL.len()],
}

impl ShedLevel {
    /// Follows a `load`, in thousandths of what is bearable, as it is `now`.
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
            // What the load was in ticks that nobody looked at is not known.
            self.level = (self.level + MAX_RISE).min(MAX_LEVEL);
        } else if let Some(since) = self.eased_since {
            let calm = now.since(since).get().saturating_sub(RECOVERY_TIME.get()) / TICK.get();
            let fall = ticks.min(calm).saturating_mul(u64::from(MAX_FALL));
            self.level = self.level.saturating_sub(u32::try_from(fall).unwrap_or(u32::MAX));
        }
    }

    /// Whether the next request of `priority` is shed.
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

    /// How many thousandths of the requests of `priority` are shed.
    #[must_use]
    pub fn share(&self, priority: Priority) -> u32 {
        self.level.saturating_sub(begins(priority)).min(PRIORITY_SPAN)
    }

    /// When some requests of `priority` pass again that are all shed now, if the load is low from
    /// now on; none if some pass.
    #[must_use]
    pub fn passes_after(&self, priority: Priority) -> Millis {
        if self.share(priority) < PRIORITY_SPAN {
            return Millis::ZERO;
        }
        let above = self.level - begins(priority) - PRIORITY_SPAN + 1;
        // The tick in which the calm is seen comes before it counts.
        let ticks = above.div_ceil(MAX_FALL) + 1;
        Millis::new(RECOVERY_TIME.get() + u64::from(ticks) * TICK.get())
    }

    /// The level itself.
    #[must_use]
    pub const fn get(&self) -> u32 {
        self.level
    }
}

/// The level above which some requests of `priority` are shed.
const fn begins(priority: Priority) -> u32 {
    PRIORITY_SPAN * priority as u32
}
