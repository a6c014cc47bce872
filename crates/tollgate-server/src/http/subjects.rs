//! `GET /v1/subjects?limit=core&prefix=ali&after=CURSOR`: the subjects of a limit that shows its
//! subjects in clear text, for administrators.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate::model::key::Stored;
use tollgate::model::policy::NameError;
use tollgate::model::{Store, Subject};
use tollgate::observe::{RankBy, TOP_SUBJECTS};

use super::app::App;
use super::callbacks::{Subjects, SubjectsError, SubjectsPage, SubjectsRequest};
use super::check::unknown_name;
use super::json;
use super::problem::{Kind, Problem};
use super::query::{invalid, parameters};
use super::redaction::{RedactedSubject, Redaction};
use super::respond::Answer;

/// One page of the subjects of a limit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SubjectsResponse")]
pub(super) struct SubjectsResponse<'a> {
    /// The limit's name.
    limit: &'a str,
    /// The source of the list.
    source: SubjectSource,
    /// The subjects of this page. A page can be empty although there are more.
    subjects: Vec<RedactedSubject>,
    /// The value of `after` for the next page. Null at the end.
    next: Option<String>,
}

/// The source of a list of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SubjectSource {
    /// The store, with all subjects that have state.
    Store,
    /// This node, with the heaviest subjects of its decisions in the last five to ten minutes.
    Recent,
}

/// The parsed query.
struct SubjectsQuery {
    limit: String,
    prefix: String,
    after: Option<String>,
}

impl<S: Store> App<S> {
    /// Returns one page of the subjects of a limit, if the limit shows them in clear text.
    pub(super) async fn subjects(&self, query: &str) -> Answer {
        let SubjectsQuery { limit, prefix, after } = SubjectsQuery::read(query)?;
        let policy = self.limiter.policy();
        let known = policy.limits().iter().find(|known| known.limit.name() == limit);
        let Some(known) = known else {
            return Err(unknown_name(&policy, &NameError::Limit(limit.as_str().into())));
        };
        let first = known.per.first().and_then(|index| policy.dimensions().get(*index));
        let Some(first) = first else {
            return Err(invalid(format!(
                "{limit:?} has one counter for all clients and no subjects"
            )));
        };
        if self.options.redaction_of(&limit) == Redaction::Hashed {
            let detail = format!(
                "the subjects of {limit:?} are not revealed: set `reveal: true` for the limit in \
                 the policy"
            );
            return Err(Problem::new(Kind::NotFound, detail));
        }
        let wanted = SubjectsRequest {
            limit: Arc::clone(&known.limit),
            dimension: (*first.name).into(),
            prefix: prefix.as_str().into(),
            after: after.map(Into::into),
        };
        let (source, SubjectsPage { subjects, next }) = self.list(wanted).await?;
        let key = self.limiter.key();
        let shown = |subject| RedactedSubject::of(subject, Redaction::Clear, key);
        let subjects = subjects.iter().map(shown).collect();
        Ok(json::write(&SubjectsResponse { limit: &limit, source, subjects, next })?)
    }

    async fn list(
        &self,
        wanted: SubjectsRequest,
    ) -> Result<(SubjectSource, SubjectsPage), Problem> {
        if let Some(Subjects(list)) = &self.options.subjects {
            let listed = list(wanted.clone()).await.map_err(|error| match error {
                SubjectsError::After => invalid("`after` must be the `next` of the previous page"),
                SubjectsError::Store(reason) => Problem::new(Kind::StoreUnavailable, reason),
            })?;
            if let Some(page) = listed {
                return Ok((SubjectSource::Store, page));
            }
        }
        if wanted.after.is_some() {
            return Err(invalid(
                "`after` must be the `next` of the previous page: there is only one page",
            ));
        }
        let Some(top) = &self.options.top else {
            return Err(Problem::new(Kind::NotFound, "this listener does not list subjects"));
        };
        let now = self.limiter.now();
        let of = |by| top.ranked(by, Some(wanted.limit.name()), TOP_SUBJECTS, now);
        let lists = [RankBy::Charged, RankBy::Refused].into_iter().flat_map(of);
        let subjects: BTreeSet<_> =
            lists.flat_map(|list| list.subjects).map(|it| it.subject).collect();
        let subjects = subjects.into_iter().filter(|subject| begins(subject, &wanted.prefix));
        Ok((SubjectSource::Recent, SubjectsPage { subjects: subjects.collect(), next: None }))
    }
}

/// Returns whether the value of the subject's first dimension is in clear text and starts with
/// `prefix`. An empty `prefix` matches every subject.
fn begins(subject: &Subject, prefix: &str) -> bool {
    prefix.is_empty()
        || subject.pairs().next().is_some_and(|(_, stored)| match stored {
            Stored::Clear(bytes) => bytes.starts_with(prefix.as_bytes()),
            Stored::Absent | Stored::Hashed(_) => false,
        })
}

impl SubjectsQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let (mut limit, mut prefix, mut after) = (None, None, None);
        for (name, value) in parameters(query)? {
            let target = match &*name {
                "limit" => &mut limit,
                "prefix" => &mut prefix,
                "after" => &mut after,
                _ => {
                    let known = "`limit=NAME`, `prefix=TEXT` and `after=CURSOR`";
                    return Err(invalid(format!(
                        "unknown parameter {name:?}: the parameters are {known}"
                    )));
                }
            };
            let value = value.ok_or_else(|| invalid(format!("`{name}` has no value")))?;
            if target.replace(value).is_some() {
                return Err(invalid(format!("`{name}` is given twice")));
            }
        }
        let limit = limit.ok_or_else(|| invalid("name a limit: `limit=NAME`"))?;
        Ok(Self { limit, prefix: prefix.unwrap_or_default(), after })
    }
}
