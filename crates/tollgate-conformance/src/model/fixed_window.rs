//! The reference model of a fixed window: a list of windows with their charges.

use tollgate_core::algo::{self, fixed_window::Anchor};
use tollgate_core::{ChargeId, MAX_EXACT, Timestamp};

use super::account::{Account, Charged, units_in};

#[derive(Clone, Debug)]
pub(super) struct FixedWindow {
    window: u64,
    anchor: Anchor,
    skew: u64,
    /// The ends of all windows that were opened, in the order in which the windows were opened.
    ends: Vec<u64>,
    /// The charges, by the end of their window.
    charges: Vec<Charged>,
}

impl FixedWindow {
    pub(super) fn new(of: &algo::FixedWindow, skew: u64) -> Self {
        let (ends, charges) = (Vec::new(), Vec::new());
        Self { window: of.window().get(), anchor: of.anchor(), skew, ends, charges }
    }

    /// Returns the end of the window that is open at `at`, or `None` if no window is open.
    fn in_force(&self, seen: u64, at: u64) -> Option<u64> {
        let end = *self.ends.last()?;
        (at < end && !self.is_impossible(seen)).then_some(end)
    }

    /// Returns the end of the window to which a charge at `now` belongs.
    fn end(&self, now: u64) -> u64 {
        self.in_force(now, now).unwrap_or_else(|| match self.anchor {
            Anchor::FirstRequest => now + self.window,
            Anchor::Calendar => now - now % self.window + self.window,
            Anchor::Scheduled(schedule) => {
                schedule.window_at(Timestamp::from_millis(now)).end.as_millis()
            }
        })
    }
}

impl Account for FixedWindow {
    fn copied(&self) -> Box<dyn Account> {
        Box::new(self.clone())
    }

    fn used(&self, seen: u64, at: u64) -> u64 {
        self.in_force(seen, at).map_or(0, |end| units_in(&self.charges, end))
    }

    fn full_reset_at(&self, now: u64) -> u64 {
        self.end(now)
    }

    fn position(&self, now: u64) -> u64 {
        self.end(now)
    }

    fn is_impossible(&self, now: u64) -> bool {
        self.ends.last().is_some_and(|end| *end > now + self.window + self.skew)
    }

    fn record(&mut self, now: u64, units: u64, id: ChargeId) {
        let end = self.end(now);
        if self.in_force(now, now).is_none() {
            // The list can contain an earlier window with the same end, if another clock opened and
            // closed a window in between. The earlier window is a different window, so its charges
            // are removed.
            self.charges.retain(|charge| charge.position != end);
            self.ends.push(end);
        }
        let units = units.min(MAX_EXACT - units_in(&self.charges, end));
        self.charges.push(Charged { position: end, id, units });
    }

    fn refund(&mut self, now: u64, id: ChargeId, units: u64) -> u64 {
        let Some(end) = self.in_force(now, now) else { return 0 };
        let mut charges = self.charges.iter_mut();
        let found = charges.find(|charge| charge.id == id && charge.position == end);
        found.map_or(0, |charge| charge.refund_units(units))
    }

    fn expires_at(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}
