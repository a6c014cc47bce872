//! Tests of the log of answers.

use std::sync::Barrier;
use std::thread;

use tollgate_core::algo::{Anchor, Concurrency, FixedWindow, SlidingLog, TokenBucket};
use tollgate_core::{ChargeId, Cost, assess};

use super::super::definitions::MAX_NEW_LIMITS;
use super::*;

/// Returns a token bucket with this quota. Each quota has a definition of its own.
fn bucket(quota: u64) -> Limit {
    let bucket = TokenBucket::new(quota, Millis::from_secs(60), quota).unwrap();
    Limit::new("limit", Algorithm::TokenBucket(bucket)).unwrap()
}

fn record(log: &ChargeLog, now: Timestamp, limit: &Limit) {
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charges = [Charge { limit, subject: &Subject::default(), operation }];
    let reading = Reading {
        admission: Admission::Now,
        used: 1,
        full_reset_at: now.after(Millis::from_secs(60)),
        ..Reading::default()
    };
    log.remember(log.begin(), now, &charges, &[reading].into_iter().collect());
}

/// Without the removal of definitions that no entry uses, a caller that sends ever new quotas
/// would fill the memory.
#[test]
fn definitions_without_an_entry_are_removed() {
    let (log, now) = (ChargeLog::new(64), Timestamp::from_millis(1_700_000_000_000));
    for quota in 1..=5_000 {
        record(&log, now, &bucket(quota));
        let kept = log.definitions.read().len();
        assert!(kept <= log.capacity() + MAX_NEW_LIMITS, "{kept} after {quota}");
    }
}

/// The bug: a definition was kept before its entry existed, so a scan at that moment removed
/// it, and the replay skipped the entry.
#[test]
fn a_scan_removed_the_definition_of_an_entry_that_was_being_recorded() {
    let (log, now) = (ChargeLog::new(64), Timestamp::from_millis(1_700_000_000_000));
    let (limit, operation) = (bucket(5), Operation::Reset);
    let charge = Charge { limit: &limit, subject: &Subject::default(), operation };
    let entry = log.recorded_state(now, &charge, 1, 0, now.after(Millis::from_secs(60)));
    let key = log.states.quota_key(&charge);
    log.update(log.begin(), now, key, &limit, |_| {
        // A scan by another thread, which does not find the entry yet.
        log.definitions.clear();
        entry
    });
    assert!(log.states.get(key).is_some());
    assert!(log.definitions.read().contains_key(&definition(&limit)));
}

/// The bug: a charge that was recorded while its subject was reset stayed recorded. The next
/// failover restored its units.
#[test]
fn a_charge_was_recorded_after_the_reset_of_its_subject() {
    const ROUNDS: u64 = 5_000;
    let (window, now) = (Millis::from_secs(60), Timestamp::from_millis(1_700_000_000_000));
    let limits = [
        Algorithm::FixedWindow(FixedWindow::new(5, window, Anchor::Calendar).unwrap()),
        Algorithm::SlidingLog(SlidingLog::new(5, window).unwrap()),
        Algorithm::Concurrency(Concurrency::new(5, window).unwrap()),
    ];
    let limits = limits.map(|algorithm| Limit::new("limit", algorithm).unwrap());
    let subject = Subject::default();
    let of =
        |operation| limits.each_ref().map(|limit| Charge { limit, subject: &subject, operation });
    let charges = of(Operation::Charge { cost: Cost::ONE, id: ChargeId(1) });
    let full_reset_at = now.after(window);
    let position = ChargePosition(now.as_millis());
    let reading = Reading {
        admission: Admission::Now,
        used: 1,
        full_reset_at,
        position,
        ..Reading::default()
    };
    let readings: Readings = charges.iter().map(|_| reading).collect();
    let (log, start) = (ChargeLog::new(64), Barrier::new(2));
    let count = || log.states.values().len();
    log.remember(log.begin(), now, &charges, &readings);
    assert_eq!(count(), charges.len());
    let mut recorded = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                start.wait();
                log.remember(log.begin(), now, &of(Operation::Reset), &readings);
                start.wait();
            }
        });
        for _ in 0..ROUNDS {
            let started = log.begin();
            start.wait();
            log.remember(started, now, &charges, &readings);
            start.wait();
            recorded += count();
        }
    });
    assert_eq!(recorded, 0);
}

/// The log of a node whose calls charge one fixed window, and in which each reading is recorded at
/// the same time.
struct OneWindow {
    log: ChargeLog,
    limit: Limit,
}

impl OneWindow {
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn new() -> Self {
        let window = FixedWindow::new(100, Millis::from_secs(60), Anchor::Calendar).unwrap();
        let limit = Limit::new("limit", Algorithm::FixedWindow(window)).unwrap();
        Self { log: ChargeLog::new(64), limit }
    }

    /// Records the answer `used` to the operation of a call that began at `started`.
    fn answer(&self, started: CallStart, operation: Operation, used: u64) {
        self.answer_in(started, operation, used, Millis::from_secs(20));
    }

    /// Records the answer `used` to a call that began at `started`, in the window that ends after
    /// `rest`.
    fn answer_in(&self, started: CallStart, operation: Operation, used: u64, rest: Millis) {
        let charges = [Charge { limit: &self.limit, subject: &Subject::default(), operation }];
        let full_reset_at = Self::NOW.after(rest);
        let reading =
            Reading { admission: Admission::Now, used, full_reset_at, ..Reading::default() };
        self.log.remember(started, Self::NOW, &charges, &[reading].into_iter().collect());
    }

    /// Records the answer `used` to a charge that began at `started`.
    fn charge(&self, started: CallStart, used: u64) {
        self.answer(started, Operation::Charge { cost: Cost::ONE, id: ChargeId(1) }, used);
    }

    /// Returns the units that a failover would replay.
    fn used(&self) -> u64 {
        let known = self.log.known(Self::NOW, Millis::ZERO);
        assess(Some(&known[0].cell), &self.limit, Cost::PEEK, Self::NOW).used
    }
}

/// Another node resets the subject after this node's answer of 80. Then two calls are in flight:
/// the one that began before that answer is executed after the other.
#[test]
fn the_charge_of_a_call_that_began_early_and_was_executed_late_is_kept() {
    let node = OneWindow::new();
    let early = node.log.begin();
    node.charge(node.log.begin(), 80);
    let late = node.log.begin();
    node.charge(early, 2);
    assert_eq!(node.used(), 80, "the store may have executed it before the call that read 80");
    node.charge(late, 1);
    assert_eq!(node.used(), 2);
}

/// If a new call always begins before the answer to the call before it, no call begins after the
/// last recorded answer.
#[test]
fn calls_that_always_overlap_replace_a_higher_reading() {
    let node = OneWindow::new();
    let mut before = node.log.begin();
    node.charge(node.log.begin(), 80);
    let mut found = Vec::new();
    for used in 1..=4 {
        let next = node.log.begin();
        node.charge(before, used);
        found.push(node.used());
        before = next;
    }
    assert_eq!(found, [80, 2, 3, 4]);
}

/// A replica that lags may answer a peek of a call.
#[test]
fn a_peek_does_not_replace_a_higher_reading() {
    let node = OneWindow::new();
    node.charge(node.log.begin(), 80);
    node.answer(node.log.begin(), Operation::Peek { cost: Cost::ONE }, 70);
    assert_eq!(node.used(), 80);
}

/// A full window that has ended does not hide the units of the next window, also if the calls
/// overlap.
#[test]
fn a_full_earlier_window_does_not_hide_the_next_one_while_calls_overlap() {
    let window = OneWindow::new();
    let charge = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let (earlier, later) = (window.log.begin(), window.log.begin());
    window.answer_in(earlier, charge, 100, Millis::from_secs(20));
    window.answer_in(later, charge, 1, Millis::from_secs(50));
    assert_eq!(window.used(), 1);
}
