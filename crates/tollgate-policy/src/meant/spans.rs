//! Charges that may span shards: each limit is routed by one subject, and a charge on limits that
//! are routed by different ones is given back by a second round trip if one of them refuses it.

use std::ops::Range;

use tollgate_core::Policy;
use tollgate_core::policy::Rules;

use crate::read::quoted;
use crate::report::Report;
use crate::settings::{RedisSettings, StoreSettings};
use crate::tree::Span;
use crate::written::PolicyFile;

/// Warns of rules whose limits may live on several shards, and of a `route_by` that routes nothing.
pub(super) fn warn(
    policy: &Policy,
    file: &PolicyFile,
    store: &StoreSettings,
    rule_spans: &[Span],
    report: &mut Report<'_>,
) {
    let StoreSettings::Redis(redis) = store else { return };
    if redis.shards.len() < 2 {
        return;
    }
    let routes = Routes::new(policy, redis);
    idle_route_by(file, &routes, report);
    for together in charged_together(policy) {
        let rules = policy.rules()[together.clone()].iter().zip(&rule_spans[together]);
        let uses =
            rules.flat_map(|(rule, at)| rule.limits.iter().map(move |used| (used, rule, *at)));
        let uses: Vec<_> = uses.map(|(used, rule, at)| (used.limit, rule, at)).collect();
        let Some((first, ..)) = uses.first() else { continue };
        let apart = uses.iter().find(|(limit, ..)| routes.of(*limit) != routes.of(*first));
        if let Some((apart, rule, at)) = apart {
            let limits: Vec<usize> = uses.iter().map(|(limit, ..)| *limit).collect();
            spanning_rule(&rule.name, *apart, &limits, &routes, *at, report);
        }
    }
}

/// The rules that one request may be charged by: each alone, or all of them.
fn charged_together(policy: &Policy) -> Vec<Range<usize>> {
    let rules = 0..policy.rules().len();
    match policy.order() {
        Rules::FirstMatch => rules.map(|rule| rule..rule + 1).collect(),
        Rules::AllMatches => vec![rules],
    }
}

/// By which subject each limit is routed.
struct Routes<'p> {
    policy: &'p Policy,
    route_by: Option<usize>,
}

impl<'p> Routes<'p> {
    fn new(policy: &'p Policy, redis: &RedisSettings) -> Self {
        let dimensions = policy.dimensions();
        let route_by = redis.route_by.as_ref();
        let route_by = route_by
            .and_then(|chosen| dimensions.iter().position(|dimension| dimension.name == *chosen));
        Self { policy, route_by }
    }

    /// The dimension that routes the limit; `None` if it counts for everybody together.
    fn of(&self, limit: usize) -> Option<usize> {
        let per = &self.policy.limits()[limit].per;
        let chosen = self.route_by.filter(|chosen| per.contains(chosen));
        chosen.or_else(|| per.first().copied())
    }

    /// A dimension that would route all of `limits`.
    fn common(&self, limits: &[usize]) -> Option<&'p str> {
        let per = |limit: &usize| &self.policy.limits()[*limit].per;
        let (first, others) = limits.split_first()?;
        let is_common =
            |dimension: &&usize| others.iter().all(|limit| per(limit).contains(dimension));
        let common = per(first).iter().find(is_common)?;
        Some(&self.policy.dimensions()[*common].name)
    }

    /// `core goes by token`.
    fn said(&self, limit: usize) -> String {
        let name = self.policy.limits()[limit].limit.name();
        match self.of(limit) {
            Some(dimension) => {
                format!("{name} goes by {}", self.policy.dimensions()[dimension].name)
            }
            None => format!("{name} is one for everybody"),
        }
    }
}

fn idle_route_by(file: &PolicyFile, routes: &Routes<'_>, report: &mut Report<'_>) {
    let redis = file.store.value().and_then(|store| store.redis.value());
    let (Some(given), Some(chosen)) =
        (redis.and_then(|redis| redis.route_by.given()), routes.route_by)
    else {
        return;
    };
    if !routes.policy.limits().iter().any(|limit| limit.per.contains(&chosen)) {
        let message =
            format_args!("no limit counts per {}, so nothing is routed by it", given.value.0);
        report.warning(given.at, message, "limits go by the first of their `per` instead");
    }
}

/// Warns of a rule that charges the limit `apart`, routed otherwise than the first of `limits`.
fn spanning_rule(
    rule: &str,
    apart: usize,
    limits: &[usize],
    routes: &Routes<'_>,
    at: Span,
    report: &mut Report<'_>,
) {
    let message = format_args!(
        "a charge of the rule {} may span shards: then its refusal takes a second round trip",
        quoted(rule)
    );
    let which = format!("{}, {}", routes.said(limits[0]), routes.said(apart));
    match routes.common(limits) {
        Some(common) => {
            let hint = format_args!("{which}; route_by: {common} keeps them together");
            report.warning(at, message, hint);
        }
        None => report.warning(at, message, which),
    }
}
