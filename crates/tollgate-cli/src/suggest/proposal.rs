//! A policy with the proposed quotas, and its refusals on the same logs.

use std::cmp::Ordering;
use std::fmt::Write;

use serde::Serialize;
use tollgate_backend::memory_bounds;

use super::curve::Curve;
use super::share::RefusedShare;
use super::subject::{Counting, Dimension, Window};
use super::usage::Usage;
use crate::failure::Failure;
use crate::simulate::log::{Input, Log, Options};
use crate::simulate::outcome::{Moment, Simulation};
use crate::simulate::progress::{Progress, ProgressTarget};
use crate::simulate::request::Request;
use crate::simulate::run::{self, Candidate, Plan};

/// The input of a proposal.
#[derive(Debug)]
pub(crate) struct Task {
    /// The logs to read.
    pub(crate) inputs: Vec<Input>,
    /// The settings for reading the logs.
    pub(crate) options: Options,
    /// The dimension that the quotas are for.
    pub(crate) per: Dimension,
    /// The windows of the limits.
    pub(crate) windows: Vec<Window>,
    /// The share of subjects that may be refused at least once.
    pub(crate) subjects: RefusedShare,
    /// The share of requests that may be refused.
    pub(crate) requests: RefusedShare,
}

/// The proposed policy, and the counts that it is based on.
#[derive(Debug, Serialize)]
pub(crate) struct Proposal {
    /// The names of the logs.
    pub(crate) logs: Vec<String>,
    /// The time of the first request, and in `to` the time of the last request. `None` if the logs
    /// have no request.
    pub(crate) from: Option<Moment>,
    pub(crate) to: Option<Moment>,
    /// The dimension of the subjects.
    pub(crate) per: String,
    /// The word for several subjects, such as "clients".
    #[serde(skip)]
    pub(crate) plural: &'static str,
    /// The number of requests that have a subject and were counted.
    pub(crate) requests: u64,
    pub(crate) subjects: u64,
    /// The number of requests without a subject, which the policy does not limit.
    pub(crate) requests_without: u64,
    /// The number of ambiguous requests, which are refused whatever the limits.
    pub(crate) requests_ambiguous: u64,
    /// The number of requests that were not counted, because there were too many subjects.
    pub(crate) requests_uncounted: u64,
    pub(crate) malformed: u64,
    pub(crate) windows: Vec<WindowProposal>,
    /// The text of the policy file.
    pub(crate) policy: String,
    /// The refusals of the policy on the same logs. `None` if one of the logs is standard input,
    /// which cannot be read a second time.
    pub(crate) simulated: Option<Simulated>,
}

/// The curve of the windows of one length, and the proposed quota.
#[derive(Debug, Serialize)]
pub(crate) struct WindowProposal {
    pub(crate) window: String,
    /// The most requests of one subject in one window.
    pub(crate) peak: u64,
    pub(crate) quota: u64,
    /// Whether the policy has this limit. A limit is left out if it could never refuse a request
    /// that the limits of the other windows admit.
    pub(crate) is_used: bool,
    pub(crate) curve: Vec<Point>,
}

/// The refusals that a quota would cause if it were the quota of the only limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Point {
    pub(crate) quota: u64,
    pub(crate) subjects_refused: u64,
    pub(crate) requests_refused: u64,
}

/// The refusals by the whole policy in the simulation.
#[derive(Debug, Serialize)]
pub(crate) struct Simulated {
    pub(crate) requests_refused: u64,
    /// The number of subjects that were refused by the limit that refuses the most subjects.
    pub(crate) subjects_refused: u64,
}

/// The shares of refused subjects for which a curve has points, in addition to the proposed quota.
const SHARES: [&str; 6] = ["20%", "10%", "5%", "2%", "0.5%", "0%"];

/// Counts the requests of the logs, chooses quotas, and simulates the policy with them.
///
/// # Errors
/// Logs that cannot be read, or that have no request with a subject.
pub(crate) async fn propose(task: Task) -> Result<Proposal, Failure> {
    let Counts { usage, period, requests_without, requests_ambiguous, malformed } = count(&task)?;
    let (subjects, requests) = (usage.subjects(), usage.requests());
    if subjects == 0 {
        let per = &task.per;
        return Err(
            format!("no request has a subject by `--per {per}`; is it the right field?").into()
        );
    }
    let requests_uncounted = usage.uncounted();
    let curves = usage.curves();
    let quotas = quotas(&task, &curves);
    let windows: Vec<WindowProposal> = task
        .windows
        .iter()
        .zip(&curves)
        .enumerate()
        .map(|(index, (window, curve))| {
            let is_used = is_needed(index, &quotas, &task.windows);
            window_proposal(window, curve, quotas[index], is_used)
        })
        .collect();
    let policy = policy_file(&task, &windows);
    let mut proposal = Proposal {
        logs: task.inputs.iter().map(ToString::to_string).collect(),
        from: period.map(|(from, _)| Moment(from)),
        to: period.map(|(_, to)| Moment(to)),
        per: task.per.to_string(),
        plural: task.per.plural(),
        requests,
        subjects,
        requests_without,
        requests_ambiguous,
        requests_uncounted,
        malformed,
        windows,
        policy,
        simulated: None,
    };
    if !task.inputs.contains(&Input::Stdin) {
        proposal.simulated = Some(simulated(task, &proposal.policy).await?);
    }
    Ok(proposal)
}

/// The counted requests of the logs.
struct Counts {
    usage: Usage,
    /// The times of the first and of the last request.
    period: Option<(u64, u64)>,
    requests_without: u64,
    requests_ambiguous: u64,
    malformed: u64,
}

/// Reads the logs and counts their requests.
fn count(task: &Task) -> Result<Counts, Failure> {
    let counting = Counting::new(&task.per)?;
    let mut log = Log::open(&task.inputs, &task.options)?;
    let mut usage = Usage::new(task.windows.iter().map(|window| window.millis).collect());
    let mut progress = Progress::of(&log, ProgressTarget::Terminal);
    let (mut period, mut requests_without, mut requests_ambiguous) = (None::<(u64, u64)>, 0, 0);
    while let Some(entry) = log.next_entry()? {
        period = Some((period.map_or(entry.time, |(from, _)| from), entry.time));
        match counting.subject(&Request::new(&entry, &task.options.fields)) {
            Ok(Some(subject)) => usage.count(subject, entry.time),
            Ok(None) => requests_without += 1,
            Err(_) => requests_ambiguous += 1,
        }
        progress.entry(&log);
    }
    progress.finish();
    let malformed = log.issues().malformed;
    Ok(Counts { usage, period, requests_without, requests_ambiguous, malformed })
}

/// Returns the quota of each window. The quota of a longer window is not smaller than the quota of
/// a shorter window.
fn quotas(task: &Task, curves: &[Curve]) -> Vec<u64> {
    let own: Vec<u64> =
        curves.iter().map(|curve| curve.quota_for(task.subjects, task.requests)).collect();
    let of = |window: &Window| {
        let shorter = task.windows.iter().zip(&own).filter(|(one, _)| one.millis <= window.millis);
        shorter.map(|(_, quota)| *quota).max().unwrap_or(1)
    };
    task.windows.iter().map(of).collect()
}

/// Returns whether the limit of the window at `index` refuses any request that the other limits
/// admit.
fn is_needed(index: usize, quotas: &[u64], windows: &[Window]) -> bool {
    let (quota, length) = (quotas[index], windows[index].millis);
    windows.iter().zip(quotas).all(|(other, other_quota)| match other.millis.cmp(&length) {
        Ordering::Greater => *other_quota > quota,
        Ordering::Less => {
            // The number of windows of the shorter limit that can overlap the longer window: those
            // that begin within the longer window, and one that began before it.
            let begun = length.div_ceil(other.millis) + 1;
            other_quota.saturating_mul(begun) > quota
        }
        Ordering::Equal => true,
    })
}

fn window_proposal(window: &Window, curve: &Curve, quota: u64, is_used: bool) -> WindowProposal {
    let of_shares = SHARES.iter().filter_map(|share| share.parse().ok());
    let mut shown: Vec<u64> =
        of_shares.map(|share| curve.quota_for(share, RefusedShare::ALL)).chain([quota]).collect();
    shown.sort_unstable();
    shown.dedup();
    let point = |quota| Point {
        quota,
        subjects_refused: curve.subjects_refused(quota),
        requests_refused: curve.requests_refused(quota),
    };
    let (window, peak) = (window.text.clone(), curve.peak());
    WindowProposal { window, peak, quota, is_used, curve: shown.into_iter().map(point).collect() }
}

fn policy_file(task: &Task, windows: &[WindowProposal]) -> String {
    let (name, definition) = (task.per.name(), task.per.definition());
    let mut text = format!("subjects:\n  {name}: {definition}\n\nlimits:\n");
    let used: Vec<&WindowProposal> = windows.iter().filter(|window| window.is_used).collect();
    for window in &used {
        let WindowProposal { window, quota, .. } = window;
        let limit = limit_name(window);
        let _ = writeln!(text, "  {limit}: {{ quota: {quota}, window: {window}, per: {name} }}");
    }
    let limits: Vec<_> = used.iter().map(|window| limit_name(&window.window)).collect();
    let _ = write!(
        text,
        "\nrules:\n  - {{ name: everything, {}limits: [{}] }}\n",
        task.per.condition(),
        limits.join(", ")
    );
    text
}

fn limit_name(window: &str) -> String {
    match window {
        "1s" => "per-second".to_owned(),
        "1m" => "per-minute".to_owned(),
        "1h" => "per-hour".to_owned(),
        "1d" => "per-day".to_owned(),
        other => format!("per-{other}"),
    }
}

async fn simulated(task: Task, policy: &str) -> Result<Simulated, Failure> {
    let loaded = tollgate_policy::parse("the proposed policy", policy)?;
    let bounds = memory_bounds(loaded.settings.store.memory());
    let name = "the proposed policy".to_owned();
    let Simulation { outcome, .. } = run::run(Plan {
        inputs: task.inputs,
        options: task.options,
        policy: Candidate { name, policy: loaded.policy, bounds },
        compare: None,
        top: 1,
        watcher: ProgressTarget::Terminal,
    })
    .await?;
    let of_limits = outcome.limits.iter().map(|limit| limit.subjects_refused);
    Ok(Simulated {
        requests_refused: outcome.counts.refused - outcome.ambiguous,
        subjects_refused: of_limits.max().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(texts: &[&str]) -> Vec<Window> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_limit_that_never_refuses_beside_the_others_is_left_out() {
        let windows = windows(&["1m", "1h"]);
        let needed = |quotas: [u64; 2]| [0, 1].map(|index| is_needed(index, &quotas, &windows));
        assert_eq!(needed([10, 100]), [true, true]);
        assert_eq!(needed([100, 100]), [false, true]);
        assert_eq!(needed([10, 609]), [true, true]);
        assert_eq!(needed([10, 610]), [true, false]);
    }
}
