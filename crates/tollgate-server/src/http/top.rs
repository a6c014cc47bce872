//! `GET /v1/top?by=refused&limit=core&count=20`: the subjects with the most charged or refused
//! units, for administrators.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate::model::Store;
use tollgate::model::policy::NameError;
use tollgate::observe::{self, TOP_SUBJECTS, TopOfLimit};

use super::app::App;
use super::check::unknown_name;
use super::json;
use super::problem::{Kind, Problem};
use super::query::{invalid, parameters};
use super::redaction::RedactedSubject;
use super::respond::Answer;

/// The default number of subjects of each limit.
pub(super) const DEFAULT_COUNT: usize = 20;

/// The heaviest subjects of each limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TopResponse")]
pub(super) struct TopResponse {
    /// The start of the counted period, in seconds since the Unix epoch: five to ten minutes ago,
    /// or the start of this node.
    since: u64,
    /// The quantity by which subjects are ranked.
    by: Ranking,
    /// The limits that have subjects in the list.
    limits: Vec<TopLimit>,
}

/// The quantity by which subjects are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ranking {
    /// Units that were charged.
    Charged,
    /// Units that were refused.
    Refused,
}

/// The heaviest subjects of one limit.
#[derive(Debug, Serialize, JsonSchema)]
struct TopLimit {
    /// The limit's name in the policy.
    limit: Box<str>,
    /// The subjects, heaviest first.
    subjects: Vec<TopSubject>,
}

/// A heavy subject.
#[derive(Debug, Serialize, JsonSchema)]
struct TopSubject {
    /// A value for each subject that the limit counts by, or null if the subject has none. A value
    /// that the policy does not reveal is replaced by its keyed hash, `#` and 32 hexadecimal
    /// digits.
    subject: RedactedSubject,
    /// An upper bound of the units that were charged to the subject, or refused.
    units: u64,
    /// The largest error of `units`. The subject has at least `units` minus this number.
    error: u64,
}

/// The parsed query.
struct TopQuery {
    by: Ranking,
    limit: Option<String>,
    count: usize,
}

impl<S: Store> App<S> {
    /// Returns the subjects with the most charged or refused units at this node, if this listener
    /// serves them.
    pub(super) fn top(&self, query: &str) -> Answer {
        let wanted = TopQuery::read(query)?;
        let Some(top) = &self.options.top else {
            return Err(Problem::new(Kind::NotFound, "this listener serves no top subjects"));
        };
        let policy = self.limiter.policy();
        if let Some(limit) = &wanted.limit
            && !policy.limits().iter().any(|known| known.limit.name() == limit)
        {
            return Err(unknown_name(&policy, &NameError::Limit(limit.as_str().into())));
        }
        let now = self.limiter.now();
        let by = match wanted.by {
            Ranking::Charged => observe::RankBy::Charged,
            Ranking::Refused => observe::RankBy::Refused,
        };
        let ranked = top.ranked(by, wanted.limit.as_deref(), wanted.count, now);
        let limits = ranked.into_iter().map(|top| self.shown(top)).collect();
        let since = top.since(now).as_millis() / 1_000;
        Ok(json::write(&TopResponse { since, by: wanted.by, limits })?)
    }

    fn shown(&self, TopOfLimit { limit, subjects }: TopOfLimit) -> TopLimit {
        let (redaction, key) = (self.options.redaction_of(&limit), self.limiter.key());
        let subject = |one: &observe::TopSubject| TopSubject {
            subject: RedactedSubject::of(&one.subject, redaction, key),
            units: one.units,
            error: one.error,
        };
        TopLimit { limit, subjects: subjects.iter().map(subject).collect() }
    }
}

impl TopQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let mut wanted = Self { by: Ranking::Charged, limit: None, count: DEFAULT_COUNT };
        for (name, value) in parameters(query)? {
            match (&*name, value.as_deref()) {
                ("by", Some("charged")) => wanted.by = Ranking::Charged,
                ("by", Some("refused")) => wanted.by = Ranking::Refused,
                ("by", _) => return Err(invalid("`by` is `charged` or `refused`")),
                ("limit", Some(limit)) => wanted.limit = Some(limit.to_owned()),
                ("count", Some(count)) => wanted.count = count_of(count)?,
                _ => {
                    let known = "`by=refused`, `limit=NAME` and `count=NUMBER`";
                    return Err(invalid(format!(
                        "unknown parameter {name:?}: the parameters are {known}"
                    )));
                }
            }
        }
        Ok(wanted)
    }
}

fn count_of(text: &str) -> Result<usize, Problem> {
    let count = text.parse().ok().filter(|count| (1..=TOP_SUBJECTS).contains(count));
    count.ok_or_else(|| invalid(format!("`count` is a number from 1 to {TOP_SUBJECTS}")))
}
