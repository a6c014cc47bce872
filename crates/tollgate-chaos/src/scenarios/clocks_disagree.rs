//! The clocks of two nodes disagree, first by 2 s. One of the clocks is then set wrong by 30 s, and
//! by a day.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{Millis, Timestamp};
use tollgate::{Clock, SystemClock};
use tollgate_conformance::history::History;

use super::*;

/// The time by which the second node's clock is first ahead and later behind.
const SKEW: Millis = Millis::from_secs(2);

/// The later errors of the clock in milliseconds. With such large errors, the node uses the time of
/// the store's clock instead.
const FAR_OFF: [i64; 2] = [30_000, -86_400_000];

/// A clock with a changeable error in milliseconds.
#[derive(Clone, Debug, Default)]
struct SkewedClock(Arc<AtomicI64>);

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let off = self.0.load(Ordering::Relaxed);
        let now = SystemClock.now().as_millis();
        Timestamp::from_millis(now.saturating_add_signed(off))
    }
}

pub(super) async fn run(site: &Site) -> Result<Finding, ChaosError> {
    let server = site.server(&[]).await?;
    let off = SKEW.get().cast_signed();
    let wrong = SkewedClock(Arc::new(AtomicI64::new(off)));
    let clock = |number| if number == 0 { SkewedClock::default() } else { wrong.clone() };
    let fleet = Fleet::by_clocks(&redis(&[primary(&server.url())], DEADLINE), clock).await?;
    let started = fleet.now();
    let trial = Trial::of(site, fleet).await?;
    trial.part().await;
    wrong.0.store(-off, Ordering::Relaxed);
    trial.part().await;
    let fleet = Arc::clone(&trial.nodes);
    let near = fleet.recorder().history().calls.len();
    for far in FAR_OFF {
        wrong.0.store(far, Ordering::Relaxed);
        trial.part().await;
    }
    let far = fleet.recorder().history().calls.len().saturating_sub(near);
    let did = "ran two nodes whose clocks are 2 s apart, and set one of them back by 4 s, then to \
               30 s ahead and a day back";
    let mut finding = trial.end(ScenarioReport { did, ..ScenarioReport::default() }).await;
    let history = fleet.recorder().history();
    let ran = fleet.now().since(started);
    let window = FixedWindow::new(SECOND_QUOTA, Millis::from_secs(1), Anchor::FirstRequest);
    let second = window.map_err(ChaosError::Limit)?;
    let within = second.max_admitted_units(ran, Millis::new(2 * SKEW.get()));
    finding.figures.extend([
        Figure::fault_seen("decisions behind the clock of one before", behind(&history)),
        Figure::fault_seen("decisions while a clock was far off", u64::try_from(far).unwrap_or(0)),
        Figure::at_most("units of a client by the second", most_of_a_client(&history), within),
    ]);
    Ok(finding)
}

/// Returns the number of decisions with a time that is more than half of the skew before the time
/// of an earlier decision.
fn behind(history: &History) -> u64 {
    let mut calls: Vec<_> = history.calls.iter().map(|call| (call.issued, call.now)).collect();
    calls.sort_unstable();
    let (mut latest, mut behind) = (Timestamp::EPOCH, 0);
    for (_, now) in calls {
        behind += u64::from(latest.since(now) > Millis::new(SKEW.get() / 2));
        latest = latest.max(now);
    }
    behind
}

/// Returns the largest number of units that the store admitted for one client. Units that nodes
/// admit without the store after a missed deadline are not counted. They have a separate bound,
/// which every scenario checks.
fn most_of_a_client(history: &History) -> u64 {
    let most = Excess::by_store(history, SECOND).into_values().max();
    most.unwrap_or_default()
}
