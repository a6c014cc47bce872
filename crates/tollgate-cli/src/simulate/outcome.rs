//! The result of a simulation, in the form that every report shows. The names of the fields are the
//! names in the JSON report.

mod candidate;

use serde::{Serialize, Serializer};
use tollgate::store::ImmediateStore;

use super::limit_text;
use super::log::{Log, ParseIssues};
use super::tally::{Counts, Episode, Hours, LimitTally, SubjectTally, Timeline};
use super::trial::PolicyRun;
use super::utc::Utc;
pub(crate) use candidate::CandidateOutcome;

/// The result of one policy, or of two compared policies, on the requests of a log.
#[derive(Debug, Serialize)]
pub(crate) struct Simulation {
    /// The names of the logs.
    pub(crate) logs: Vec<String>,
    /// The time of the first request, and in `to` the time of the last request. `None` if the logs
    /// have no request.
    pub(crate) from: Option<Moment>,
    pub(crate) to: Option<Moment>,
    /// The number of malformed lines.
    pub(crate) malformed: u64,
    pub(crate) malformed_examples: Vec<Example>,
    /// The number of entries that are too far out of order to be sorted. Such an entry is evaluated
    /// at the time that the log had reached before the entry.
    pub(crate) late: u64,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    pub(crate) compare: Option<Outcome>,
}

/// A time in milliseconds since the epoch; RFC 3339 in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) u64);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Utc::new(self.0))
    }
}

/// A malformed line.
#[derive(Debug, Serialize)]
pub(crate) struct Example {
    pub(crate) log: String,
    pub(crate) line: u64,
    pub(crate) why: String,
    pub(crate) excerpt: String,
}

/// The result of one policy.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) policy: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Requests to which no limit applies.
    pub(crate) unlimited: u64,
    /// Requests that services can interpret in different ways. They are refused with 400 without a
    /// charge, and are also counted in `refused`.
    pub(crate) ambiguous: u64,
    /// Requests for which the store had no room for another subject, so `on_failure` decided.
    pub(crate) undecided: u64,
    /// Requests for which the log has a host name instead of the client's address.
    pub(crate) host_names: u64,
    /// Whether a limit counts requests in flight although the log has no durations of requests, so
    /// the number of requests in flight is unknown.
    pub(crate) leases_unknown: bool,
    /// Whether the cost of a request that was charged depends on data that the log does not have. The
    /// reserved units then count as the cost.
    pub(crate) costs_unknown: bool,
    #[serde(serialize_with = "by_name")]
    pub(crate) limits: Vec<LimitOutcome>,
    pub(crate) subjects: Vec<SubjectOutcome>,
    pub(crate) refunds: Option<Savings>,
    pub(crate) over_time: Timeline,
    #[serde(skip)]
    pub(crate) hours: Hours,
}

/// The results for the requests to which one limit applied. `refused` counts only the requests that
/// this limit refused.
#[derive(Debug, Serialize)]
pub(crate) struct LimitOutcome {
    #[serde(skip)]
    pub(crate) name: String,
    /// The limit in words.
    pub(crate) rule: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Malformed requests. This number is always 0, because malformed requests match no limit.
    pub(crate) malformed: u64,
    /// Requests that the limit would have refused if it were not in shadow mode.
    pub(crate) shadow_refused: u64,
    /// The results of the limit's candidate. `None` if the limit has no candidate.
    pub(crate) candidate: Option<CandidateOutcome>,
    pub(crate) subjects: u64,
    pub(crate) subjects_refused: u64,
    /// Subjects whose counts were dropped to bound memory.
    pub(crate) subjects_forgotten: u64,
    pub(crate) capacity: u64,
    /// The most units that a subject had used at any point in time.
    pub(crate) peak: u64,
}

/// The results for the requests of one subject of one limit.
#[derive(Debug, Serialize)]
pub(crate) struct SubjectOutcome {
    pub(crate) subject: String,
    pub(crate) limit: String,
    /// The first client of the subject, as the log names it.
    pub(crate) client: String,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) capacity: u64,
    pub(crate) peak: u64,
    pub(crate) refusals: Vec<Episode>,
}

/// The effect of refunds on the number of refusals.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Savings {
    /// The statuses of the responses that are refunded.
    pub(crate) statuses: Vec<u16>,
    /// Requests that would have been refused if responses with one of `statuses` had not been
    /// refunded.
    pub(crate) refused_without: u64,
    /// The number of refusals that refunds saved. The number is negative if refunds admitted
    /// further requests, and these used units that other requests needed.
    pub(crate) refusals_saved: i64,
}

impl Simulation {
    /// Collects the results of the logs that have the names `logs`. `log` is the reader of these
    /// logs.
    pub(super) fn new(
        logs: Vec<String>,
        log: &Log,
        period: Option<(u64, u64)>,
        outcome: Outcome,
        compare: Option<Outcome>,
    ) -> Self {
        let ParseIssues { malformed, late, examples } = log.issues();
        let example = |example: &super::log::Example| Example {
            log: example.log.clone(),
            line: example.line,
            why: example.why.to_string(),
            excerpt: example.excerpt.clone(),
        };
        Self {
            logs,
            from: period.map(|(from, _)| Moment(from)),
            to: period.map(|(_, to)| Moment(to)),
            malformed: *malformed,
            malformed_examples: examples.iter().map(example).collect(),
            late: *late,
            outcome,
            compare,
        }
    }

    /// Returns the result, and the result of the policy to compare with, if there is one.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        std::iter::once(&self.outcome).chain(&self.compare)
    }
}

impl Outcome {
    /// Returns the result of `trial`, the run of the policy with the name `policy`. The result
    /// contains the `top` most affected subjects.
    pub(super) fn new<S: ImmediateStore>(policy: String, trial: &PolicyRun<S>, top: usize) -> Self {
        let tally = trial.tally();
        let refused = tally.counts.refused;
        let refunds = trial.refused_without_refunds().map(|without| Savings {
            statuses: trial.policy().answers().refund_statuses.clone(),
            refused_without: without,
            refusals_saved: without.cast_signed() - refused.cast_signed(),
        });
        Self {
            policy,
            counts: tally.counts,
            unlimited: tally.unlimited,
            ambiguous: tally.ambiguous,
            undecided: tally.undecided,
            host_names: tally.host_names,
            leases_unknown: tally.durations == 0
                && tally.limits.iter().any(LimitTally::is_of_leases),
            costs_unknown: trial.costs_unknown(),
            limits: tally.limits.iter().map(limit_outcome).collect(),
            subjects: top_subjects(&tally.limits, top),
            refunds,
            over_time: tally.timeline.clone(),
            hours: tally.hours.clone(),
        }
    }
}

impl LimitOutcome {
    /// Returns whether any request was evaluated on the limit, enforced or in shadow mode.
    pub(crate) fn is_evaluated(&self) -> bool {
        self.counts.requests > 0 || self.shadow_refused > 0
    }
}

fn limit_outcome(tally: &LimitTally) -> LimitOutcome {
    LimitOutcome {
        name: tally.limit.name().to_owned(),
        rule: limit_text::describe(&tally.limit),
        counts: tally.counts,
        malformed: 0,
        shadow_refused: tally.shadow_refused,
        candidate: CandidateOutcome::of(tally),
        subjects: tally.subjects.len(),
        subjects_refused: tally.subjects.refused(),
        subjects_forgotten: tally.subjects.forgotten(),
        capacity: tally.limit.capacity(),
        peak: tally.peak,
    }
}

/// Returns at most `top` subjects of all limits. Subjects with more refusals come first. Among
/// subjects with equally many refusals, subjects with more requests come first.
fn top_subjects(limits: &[LimitTally], top: usize) -> Vec<SubjectOutcome> {
    let mut subjects: Vec<SubjectOutcome> = Vec::new();
    for tally in limits {
        let best = tally.subjects.top(top).into_iter();
        subjects.extend(
            best.map(|(subject, counts)| subject_outcome(tally, subject.to_string(), counts)),
        );
    }
    subjects.sort_by(|one, other| {
        let rank = |outcome: &SubjectOutcome| (outcome.counts.refused, outcome.counts.requests);
        rank(other).cmp(&rank(one))
    });
    subjects.truncate(top);
    subjects
}

fn subject_outcome(limit: &LimitTally, subject: String, tally: &SubjectTally) -> SubjectOutcome {
    SubjectOutcome {
        subject,
        limit: limit.limit.name().to_owned(),
        client: tally.client.escape_ascii().to_string(),
        counts: tally.counts,
        capacity: limit.limit.capacity(),
        peak: tally.peak,
        refusals: tally.refusals.episodes().to_vec(),
    }
}

fn by_name<S: Serializer>(limits: &[LimitOutcome], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(limits.iter().map(|limit| (&limit.name, limit)))
}
