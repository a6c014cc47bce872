//! Worlds in which operators change overrides.

use tollgate_conformance::Random;

use super::{Action, GrantedOverride, OverrideEffect, Plan, SUBJECT_PERIOD, StoreKind};

/// The time after the end of an override in which nodes may still apply it, in ms. The clocks of
/// nodes and servers differ by at most 400 ms.
const END_TOLERANCE: u64 = 500;

/// The number of subjects of the last phase that can have an override. A new subject appears every
/// 500 ms, and the phase lasts for 2.5 s.
const LAST_SUBJECTS: u64 = 5;

impl Plan {
    /// Returns the smallest and the largest quota that the second limit may have for a subject
    /// while faults last. `subject` is its number, or `None` for a subject without overrides of its
    /// own.
    pub(crate) fn quotas_of(&self, subject: Option<u64>) -> (u64, u64) {
        self.quotas_with(|one| one.applies_to(subject))
    }

    /// Returns the smallest and the largest quota that the second limit may have for any subject
    /// while faults last.
    pub(crate) fn all_quotas(&self) -> (u64, u64) {
        self.quotas_with(|_| true)
    }

    fn quotas_with(&self, is_meant: impl Fn(&GrantedOverride) -> bool) -> (u64, u64) {
        let overrides = self.overrides.iter().filter(|one| is_meant(one));
        let of_overrides = overrides.filter_map(|one| match one.effect {
            OverrideEffect::Quota(quota) => Some(quota),
            _ => None,
        });
        let quotas = self.accepted_quotas().chain(of_overrides);
        quotas.fold((u64::MAX, 0), |(least, most), quota| (least.min(quota), most.max(quota)))
    }

    /// Adds changes of overrides of the second limit at several nodes, outages, nodes that end, and
    /// a loss of the shared document with the overrides. In a Redis Cluster, also adds a promotion
    /// or a move of slots in some worlds.
    pub(super) fn draw_overrides(&mut self, random: &mut Random) {
        let mut at = 0;
        for _ in 0..random.within(1..=8) {
            at += random.within(100..=2_000);
            if random.chance(30) {
                let of = self.overrides.get(random.within(0..=3) as usize);
                let subject = of.and_then(|one| one.subject);
                self.push_override(random, at, subject, None);
            } else {
                self.push_new_override(random, at);
            }
        }
        if random.chance(40) {
            self.draw_changes_while_down(random);
        }
        self.draw_last_overrides(random);
        self.draw_outages(random, 0..=2);
        if random.chance(20) {
            self.draw_restarts(random);
        }
        if random.chance(20) {
            let (server, lost) = (self.any_primary(random), random.within(0..=6_000));
            self.push(lost, Action::Flush(server));
            self.losses += 1;
        }
        match self.store {
            StoreKind::Redis => {}
            StoreKind::Cluster => match random.within(0..=2) {
                0 => self.draw_promotion(random),
                1 => self.draw_slot_move(random),
                _ => {}
            },
            StoreKind::Memcached => self.lose_data_at_restarts(),
        }
    }

    /// Adds an override that is set while a primary is down, and removed by another node or again
    /// while a primary is down.
    fn draw_changes_while_down(&mut self, random: &mut Random) {
        let (server, down) = (self.any_primary(random), random.within(500..=5_000));
        self.push(down, Action::Crash { server, silent: random.chance(50) });
        let set = down + random.within(1..=1_000);
        let subject = self.push_new_override(random, set);
        let removed = set + random.within(1..=3_000);
        self.push_override(random, removed, subject, None);
        let back = set + random.within(1..=3_000);
        self.push(back, Action::Start { server, has_data: true });
    }

    /// Draws the overrides at the end: one of all subjects, and some of single subjects.
    fn draw_last_overrides(&mut self, random: &mut Random) {
        use OverrideEffect::{Blocked, Counted, Unlimited};

        if random.chance(60) {
            let quota = OverrideEffect::Quota(random.within(20..=60));
            let effect = random.one_of(&[quota, quota, quota, Unlimited, Blocked, Counted]);
            self.last_overrides.push((None, effect));
        }
        for subject in 0..LAST_SUBJECTS {
            if random.chance(30) {
                let quota = OverrideEffect::Quota(random.within(20..=60));
                let effect = random.one_of(&[quota, quota, Unlimited, Blocked, Counted]);
                self.last_overrides.push((Some(subject), effect));
            }
        }
    }

    /// Adds an override at any node, of all subjects or of one that callers use at about that time.
    /// Returns the number of the subject, or `None` for all subjects.
    fn push_new_override(&mut self, random: &mut Random, at: u64) -> Option<u64> {
        use OverrideEffect::{Blocked, Counted, Unlimited};

        let quota = OverrideEffect::Quota(random.within(20..=60));
        let (subject, effects) = if random.chance(50) {
            (None, [quota, quota, quota, quota, Unlimited, Blocked, Counted])
        } else {
            let newest = at / SUBJECT_PERIOD;
            let subject = random.within(newest.saturating_sub(1)..=newest + 2);
            (Some(subject), [quota, Unlimited, Unlimited, Blocked, Blocked, Counted, Counted])
        };
        let effect = random.one_of(&effects);
        self.push_override(random, at, subject, Some(effect));
        subject
    }

    /// Adds a change of an override at any node: to `effect`, or its removal. Some overrides end by
    /// themselves.
    fn push_override(
        &mut self,
        random: &mut Random,
        at: u64,
        subject: Option<u64>,
        effect: Option<OverrideEffect>,
    ) {
        let node = self.any_node(random);
        let lasts = random.one_of(&[None, None, Some(1_000), Some(4_000)]);
        self.push(at, Action::Override { node, subject, effect, lasts });
        if let Some(effect) = effect {
            let until = lasts.map(|lasts: u64| at + lasts + END_TOLERANCE);
            self.overrides.push(GrantedOverride { subject, effect, from: at, until });
        }
    }
}
