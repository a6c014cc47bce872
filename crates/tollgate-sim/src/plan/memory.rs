//! Worlds with memcached, and worlds with servers that are busy or remove keys.

use tollgate_conformance::Random;

use super::{Action, Plan};

impl Plan {
    /// Adds outages of memcached servers. A memcached server has no data after a restart.
    pub(super) fn draw_memcached(&mut self, random: &mut Random) {
        self.draw_outages(random, 0..=3);
        self.lose_data_at_restarts();
        if random.chance(40) {
            let (server, at) = (self.any_primary(random), random.within(0..=6_000));
            self.push(at, random.one_of(&[Action::Flush(server), Action::Evict(server)]));
            self.losses += 1;
        }
        if random.chance(20) {
            self.draw_restarts(random);
        }
    }

    /// Adds servers that remove keys to free memory, and outages.
    pub(super) fn draw_evictions(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..=2) {
            let (server, at) = (self.any_primary(random), random.within(0..=6_000));
            self.push(at, Action::Evict(server));
            self.losses += 1;
        }
        self.draw_outages(random, 0..=1);
    }

    /// Adds servers that are busy with a script, and outages.
    pub(super) fn draw_busy(&mut self, random: &mut Random) {
        for _ in 0..random.within(1..=3) {
            let (server, from) = (self.any_primary(random), random.within(0..=6_000));
            let to = from + random.one_of(&[5, 20, 100, 400, 1_500, 5_000]);
            self.push(from, Action::Busy { server, on: true });
            self.push(to, Action::Busy { server, on: false });
        }
        self.draw_outages(random, 0..=1);
    }

    /// Makes the servers lose their data at each restart, as memcached servers do.
    pub(super) fn lose_data_at_restarts(&mut self) {
        for (_, action) in &mut self.actions {
            if let Action::Start { has_data, .. } = action {
                *has_data = false;
                self.losses += 1;
            }
        }
    }
}
