//! The nodes and callers of one scenario, and the check of the recorded history.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::model::Cost;
use tollgate_backend::ShardStatus;
use tollgate_conformance::Figure;
use tollgate_conformance::history::{Allowance, History, Report, Rule};
use tollgate_stores::atomic::max_held_units;

use super::error::ChaosError;
use super::excess::Excess;
use super::finding::Finding;
use super::fleet::Fleet;
use super::load::{CALLERS, Decided, Load, Tally};
use super::nodes::Nodes;
use super::policy::{HOUR_QUOTA, redis};
use super::site::{Length, Site};
use super::wait::until;

/// The nodes of a scenario, and the callers that send requests to the nodes.
pub(crate) struct Trial<'s, N = Fleet> {
    site: &'s Site,
    /// The nodes.
    pub(crate) nodes: Arc<N>,
    /// The callers of the nodes.
    pub(crate) load: Load,
}

/// The report of a scenario: its fault, and the units and counters that the fault may have lost.
#[derive(Debug, Default)]
pub(crate) struct ScenarioReport {
    /// The description of the fault: a phrase in the past tense, such as `killed a primary`.
    pub(crate) did: &'static str,
    /// The scenario's own figures, including the figures that prove that the fault had an effect.
    pub(crate) figures: Vec<Figure>,
    /// The most units of one client that the store may have counted and then lost.
    pub(crate) lost: u64,
    /// How often the store lost its whole state.
    pub(crate) losses: u64,
    /// The most units of one client that may count as used although the client did not use them:
    /// units that a rebalance counts twice at the new owner, and refunded units that count again
    /// after a failover.
    pub(crate) held_back: u64,
}

impl<'s> Trial<'s> {
    /// Starts nodes with `shards`, and runs callers for one phase of the scenario.
    pub(crate) async fn begin(
        site: &'s Site,
        shards: &[String],
        deadline: Duration,
    ) -> Result<Self, ChaosError> {
        Self::of(site, Fleet::open(&redis(shards, deadline)).await?).await
    }

    /// Waits until every node charges the server at `url`.
    pub(crate) async fn charges(&self, url: &str) -> Result<(), ChaosError> {
        until("that all nodes charge a server", async || Ok(self.nodes.charges(url))).await
    }

    /// Waits until the store makes decisions again, and has made a few decisions for every caller.
    pub(crate) async fn recovers(&self) -> Result<(), ChaosError> {
        let up = async || {
            let open =
                |shards: Vec<ShardStatus>| shards.iter().all(|shard| shard.primary().is_some());
            Ok(self.nodes.status().all(open))
        };
        until("that all nodes reach their shards", up).await
    }
}

impl<'s, N: Nodes> Trial<'s, N> {
    /// Runs callers on `nodes` for one phase of the scenario.
    pub(crate) async fn of(site: &'s Site, nodes: N) -> Result<Self, ChaosError> {
        let nodes = Arc::new(nodes);
        let load = Load::begin(&nodes);
        let trial = Self { site, nodes, load };
        trial.part().await;
        Ok(trial)
    }

    /// Waits for the duration of one phase of the scenario.
    pub(crate) async fn part(&self) {
        tokio::time::sleep(self.site.part()).await;
    }

    /// Returns a figure: the number of decisions that nodes made without the store since `before`.
    /// If the number is lower than `per_mille` in 1,000 decisions, the fault had no effect.
    pub(crate) fn fallback_since(&self, before: Decided, per_mille: u64) -> Figure {
        let now = self.load.decided();
        let (fallback, all) = (now.fallback - before.fallback, now.all - before.all);
        Figure::share_seen("decisions by nodes alone", fallback, all, per_mille)
    }

    /// Returns the figure `what`: the number of decisions that nodes made without the store since
    /// `before`. The bound of the figure is `per_mille` in 1,000 decisions. A quick run checks the
    /// figure only if the bound is zero, because other values depend on the machine.
    pub(crate) fn fallback_at_most(
        &self,
        what: &'static str,
        before: Decided,
        per_mille: u64,
    ) -> Figure {
        let now = self.load.decided();
        let (fallback, all) = (now.fallback - before.fallback, now.all - before.all);
        let figure = match self.site.length() {
            Length::Quick if per_mille > 0 => Figure::context,
            _ => Figure::at_most,
        };
        figure(what, fallback, all * per_mille / 1_000)
    }

    /// Returns the number of calls so far, which marks a point in the history.
    pub(crate) fn mark(&self) -> u64 {
        self.nodes.recorder().calls() as u64
    }

    /// Returns the most units that a promoted server may have lost, if it had received the charges
    /// of all calls that were answered before `mark`. The result is one unit for each call since
    /// `mark`, plus one unit for each call in flight.
    pub(crate) fn max_lost_units(&self, mark: u64) -> u64 {
        self.mark() - mark + CALLERS as u64
    }

    /// Waits until nodes have made more than `before` decisions without the store.
    pub(crate) async fn falls_back(&self, before: u64) -> Result<(), ChaosError> {
        until("that a node decides alone", async || Ok(self.load.fallback() > before)).await
    }

    /// Runs the last phase of the scenario, stops the callers, and checks the history.
    pub(crate) async fn end(self, report: ScenarioReport) -> Finding {
        self.part().await;
        let Self { site, nodes, load } = self;
        let tally = load.end().await;
        let history = nodes.recorder().history();
        // If no node ever decided without the store, nodes admitted nothing without the store.
        let fallback = match tally.fallback.load(Ordering::Relaxed) {
            0 => 0,
            1.. => nodes.max_fallback_units(),
        };
        let allowance =
            Allowance { lost: report.lost, fallback, charged_later: true, ..Allowance::default() };
        let (checked, held_back) = check_history(&history, allowance, report.held_back);
        let excess = Excess::of(&history);
        let bound = report.lost.min(HOUR_QUOTA) + fallback + report.losses * HOUR_QUOTA;
        let mut figures = report.figures;
        figures.extend(common(&checked, &tally, excess, bound));
        if report.held_back > 0 {
            let what = "units that a move or a failover held back";
            figures.push(Figure::at_most(what, held_back, report.held_back));
        }
        figures.push(slowest(&tally, &*nodes, site.length()));
        Finding { did: report.did, figures, checked }
    }
}

/// Checks `history` against every rule, first strictly. If the strict check fails, checks again and
/// tolerates some units that a rebalance or a failover withheld from a client: the fewest units
/// with which the check passes, and at most `most`. Returns the report and the number of tolerated
/// units.
fn check_history(history: &History, allowance: Allowance, most: u64) -> (Report, u64) {
    let strict = history.check(allowance);
    if strict.is_sound() || most == 0 {
        return (strict, 0);
    }
    // Units that the new owner refuses are charged at the old owner briefly, and other callers see
    // these units as used.
    let held = max_held_units(CALLERS as u64, Cost::ONE);
    let granting = |unrefunded| history.check(Allowance { held, unrefunded, ..allowance });
    let mut checked = (0..=most).map(|units| (granting(units), units));
    checked.find(|(report, _)| report.is_sound()).unwrap_or((strict, 0))
}

/// Returns the figures that are checked in every scenario.
fn common(checked: &Report, tally: &Tally, excess: Excess, bound: u64) -> [Figure; 5] {
    let broken = |rules: &[Rule]| {
        checked.violations.iter().filter(|violation| rules.contains(&violation.rule)).count() as u64
    };
    let unanswered = tally.unanswered.load(Ordering::Relaxed);
    [
        Figure::fault_seen("clients at their limit", excess.exhausted),
        Figure::at_most("errors to callers", unanswered, 0),
        Figure::at_most("windows opened early", broken(&[Rule::Reset]), 0),
        Figure::at_most(
            "refusals below the limit",
            broken(&[Rule::Reading, Rule::Refusal, Rule::Refund]),
            0,
        ),
        Figure::at_most("units above a client's limit", excess.worst, bound),
    ]
}

/// Returns the figure of the slowest decisions. The bound includes two delays with which the
/// machine wakes tasks: the task of the decision at its answer or deadline, and the task of the
/// caller after that. These delays are measured separately.
fn slowest(tally: &Tally, nodes: &impl Nodes, length: Length) -> Figure {
    let within = nodes.max_wait().as_millis() as u64 + 2 * tally.lateness.p999_millis();
    let figure = match length {
        Length::Quick => Figure::context,
        Length::Long => Figure::at_most,
    };
    figure("ms for all but 1 in 1,000", tally.latency.p999_millis(), within)
}
