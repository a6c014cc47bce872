//! One scenario's nodes and callers, and the judgement of what they were told.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::core::Cost;
use tollgate::store::atomic::max_held_units;
use tollgate_backend::ShardStatus;
use tollgate_conformance::Figure;
use tollgate_conformance::history::{Allowance, History, Report, Rule};

use super::error::ChaosError;
use super::excess::Excess;
use super::finding::Finding;
use super::fleet::Fleet;
use super::load::{CALLERS, Load, Tally};
use super::nodes::Nodes;
use super::policy::{HOUR_QUOTA, redis};
use super::site::{Length, Site};
use super::wait::until;

/// Nodes under load.
pub(crate) struct Trial<'s, N = Fleet> {
    site: &'s Site,
    /// The nodes.
    pub(crate) nodes: Arc<N>,
    /// Their callers.
    pub(crate) load: Load,
}

/// What a scenario did, and what it may have weakened.
#[derive(Debug, Default)]
pub(crate) struct ScenarioReport {
    /// What was done, in a sentence.
    pub(crate) did: &'static str,
    /// What is particular to it; among them what shows that the fault bit.
    pub(crate) figures: Vec<Figure>,
    /// Units of one client that the store may have counted and lost.
    pub(crate) lost: u64,
    /// How often the store lost its whole state.
    pub(crate) losses: u64,
    /// Units of one client that a move between shards may count twice at their new owner, or that were
    /// given back and may count again where a replica took over.
    pub(crate) held_back: u64,
}

impl<'s> Trial<'s> {
    /// Nodes over these shards, with callers that have asked for one part of the scenario.
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

    /// Waits until the store has decided for every caller again, a few times.
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
    /// These nodes, with callers that have asked for one part of the scenario.
    pub(crate) async fn of(site: &'s Site, nodes: N) -> Result<Self, ChaosError> {
        let nodes = Arc::new(nodes);
        let load = Load::begin(&nodes);
        let trial = Self { site, nodes, load };
        trial.part().await;
        Ok(trial)
    }

    /// Lets one part of the scenario pass.
    pub(crate) async fn part(&self) {
        tokio::time::sleep(self.site.part()).await;
    }

    /// How many calls were made so far.
    pub(crate) fn mark(&self) -> u64 {
        self.nodes.recorder().calls() as u64
    }

    /// The units that a server may have lost that took over, if it had all that was answered before
    /// `mark`: one for each call since, and one for each that was under way.
    pub(crate) fn max_lost_units(&self, mark: u64) -> u64 {
        self.mark() - mark + CALLERS as u64
    }

    /// Waits until a node has decided alone since `before`.
    pub(crate) async fn stands_in(&self, before: u64) -> Result<(), ChaosError> {
        until("that a node decides alone", async || Ok(self.load.alone() > before)).await
    }

    /// The last part passes, callers end, and what they were told is judged.
    pub(crate) async fn end(self, told: ScenarioReport) -> Finding {
        self.part().await;
        let Self { site, nodes, load } = self;
        let tally = load.end().await;
        let history = nodes.recorder().history();
        // Nodes that never decided alone admitted nothing by themselves.
        let alone = match tally.alone.load(Ordering::Relaxed) {
            0 => 0,
            1.. => nodes.admitted_alone_at_most(),
        };
        let allowance = Allowance { lost: told.lost, fallback: alone, ..Allowance::default() };
        let (judged, held_back) = judge(&history, allowance, told.held_back);
        let excess = Excess::of(&history);
        let bound = told.lost.min(HOUR_QUOTA) + alone + told.losses * HOUR_QUOTA;
        let mut figures = told.figures;
        figures.extend(common(&judged, &tally, excess, bound));
        if told.held_back > 0 {
            let what = "units that a move or a failover held back";
            figures.push(Figure::at_most(what, held_back, told.held_back));
        }
        figures.push(slowest(&tally, &*nodes, site.length()));
        Finding { did: told.did, figures, judged }
    }
}

/// Holds `history` against every rule: strictly at first, and then granting what a move between shards
/// or a failover may hold back of a client's units, from none up to `most`. Returns what it had to grant.
fn judge(history: &History, allowance: Allowance, most: u64) -> (Report, u64) {
    let strict = history.check(allowance);
    if strict.is_sound() || most == 0 {
        return (strict, 0);
    }
    // What a new owner refuses is held at the old one for a moment, and others see it.
    let held = max_held_units(CALLERS as u64, Cost::ONE);
    let granting = |unrefunded| history.check(Allowance { held, unrefunded, ..allowance });
    let mut judged = (0..=most).map(|units| (granting(units), units));
    judged.find(|(report, _)| report.is_sound()).unwrap_or((strict, 0))
}

/// What every scenario promises.
fn common(judged: &Report, tally: &Tally, excess: Excess, bound: u64) -> [Figure; 5] {
    let broken = |rules: &[Rule]| {
        judged.violations.iter().filter(|violation| rules.contains(&violation.rule)).count() as u64
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

/// The slowest decisions. A decision is woken twice: by its answer or its deadline, and then its
/// caller; how late this machine wakes was measured beside.
fn slowest(tally: &Tally, nodes: &impl Nodes, length: Length) -> Figure {
    let within = nodes.max_wait().as_millis() as u64 + 2 * tally.lateness.p999_millis();
    let figure = match length {
        Length::Quick => Figure::context,
        Length::Long => Figure::at_most,
    };
    figure("ms for all but 1 in 1,000", tally.latency.p999_millis(), within)
}
