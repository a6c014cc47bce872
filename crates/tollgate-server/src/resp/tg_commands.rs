//! The commands that name limits of the policy (`TG.CHARGE`, `TG.PEEK`, `TG.STANDING`), and the
//! commands that take a receipt (`TG.REFUND`, `TG.RELEASE`).

use tollgate::limiter::{Decision, DecisionSource};
use tollgate::limiter::{Outcome, RedeemError, Redeemed, Refunded};
use tollgate::model::limit::Visibility;
use tollgate::model::policy::{LimitBinding, NameError, Named, NamedPlan};
use tollgate::model::{
    Admission, Cost, Evaluation, KeyedHash, LimitStatus, MAX_EXACT, Policy, StoreError,
};

use super::reply::{Replies, echoed};

/// The most limits that one command names.
pub const MAX_LIMITS: usize = 16;

/// A dimension and its value. The value is `None` if the client has no value.
type Pair<'a> = (&'a str, Option<&'a str>);

/// Plans the charge of `limit[,limit…] cost [dimension value]…`. Either all of these limits are
/// charged or none. Each limit is charged for the values that it counts by.
///
/// # Errors
/// The error reply.
pub(super) fn charge(
    policy: &Policy,
    args: &[&[u8]],
    key: &impl KeyedHash,
) -> Result<NamedPlan, String> {
    let [limits, cost, subject @ ..] = args else { return Err("ERR syntax error".to_owned()) };
    let limits: Vec<&str> = text(limits, "limit")?.split(',').collect();
    if limits.len() > MAX_LIMITS {
        return Err(format!("ERR at most {MAX_LIMITS} limits can be charged at once"));
    }
    let cost = units(cost, "cost")?;
    let pairs = pairs(subject)?;
    let named: Vec<(&str, Vec<Pair<'_>>)> = limits
        .iter()
        .map(|limit| (*limit, subject_values(policy, binding(policy, limit), &pairs)))
        .collect();
    let is_counted =
        |name: &str| named.iter().any(|(_, of)| of.iter().any(|(one, _)| *one == name));
    let is_known = |limit: &&str| binding(policy, limit).is_some();
    if let Some((name, _)) = pairs.iter().find(|(name, _)| !is_counted(name))
        && limits.iter().all(is_known)
    {
        return Err(format!(
            "ERR none of the named limits counts by \"{}\"",
            echoed(name.as_bytes())
        ));
    }
    let charges = named.iter().map(|(limit, subject)| Named { limit, cost, subject });
    policy.plan_named(charges, key).map_err(|(_, error)| explain(&error))
}

/// Plans the peek of `[dimension value]…`: every visible limit that counts by exactly these
/// dimensions.
///
/// # Errors
/// The error reply.
pub(super) fn limit_status(
    policy: &Policy,
    args: &[&[u8]],
    key: &impl KeyedHash,
) -> Result<NamedPlan, String> {
    let pairs = pairs(args)?;
    let is_given = |index: &usize| {
        policy
            .dimensions()
            .get(*index)
            .is_some_and(|dimension| pairs.iter().any(|(name, _)| *name == &*dimension.name))
    };
    let of_subject = policy.limits().iter().filter(|binding| {
        binding.limit.visibility() == Visibility::Visible && binding.per.iter().all(is_given)
    });
    let named: Vec<(&str, Vec<Pair<'_>>)> = of_subject
        .map(|binding| (binding.limit.name(), subject_values(policy, Some(binding), &pairs)))
        .collect();
    let charges = named.iter().map(|(limit, subject)| Named { limit, cost: Cost::PEEK, subject });
    policy.plan_named(charges, key).map_err(|(_, error)| explain(&error))
}

/// Returns the error reply to an invalid name. In this protocol an empty argument means a missing
/// value, because clients cannot send null.
fn explain(error: &NameError) -> String {
    match error {
        NameError::Missing(name) => format!(
            "ERR the limit counts by {name:?}: send its value, or an empty one for clients without \
             a value"
        ),
        error => format!("ERR {error}"),
    }
}

/// Replies with the result of a charge. `receipt` is the token for a later refund.
pub(super) fn reply(decision: &Decision, receipt: Option<String>, replies: &mut Replies) {
    if let (DecisionSource::Failure(error), false) = (decision.source, decision.is_admitted()) {
        return reply_failure(error, replies);
    }
    let answer = Answer { is_admitted: decision.is_admitted(), source: decision.source, receipt };
    answer.write(&decision.evaluation, replies);
}

/// Replies with the result of a peek.
pub(super) fn reply_peek(evaluation: &Evaluation, source: DecisionSource, replies: &mut Replies) {
    let answer = Answer { is_admitted: evaluation.is_admitted(), source, receipt: None };
    answer.write(evaluation, replies);
}

/// Replies with the statuses in `evaluation`, without a decision.
pub(super) fn reply_statuses(evaluation: &Evaluation, replies: &mut Replies) {
    reply_each(&evaluation.statuses, replies);
}

/// Replies with an array of `statuses`, without a decision.
pub(super) fn reply_each(statuses: &[LimitStatus], replies: &mut Replies) {
    replies.array(statuses.len());
    statuses.iter().for_each(|limit_status| write_status(limit_status, replies));
}

/// Replies with the result of a refund or a release.
pub(super) fn reply_refund(redeemed: &Result<Redeemed, RedeemError>, replies: &mut Replies) {
    let redeemed = match redeemed {
        Ok(redeemed) => redeemed,
        Err(error) => return replies.error(format!("ERR {error}")),
    };
    replies.map(2);
    replies.bulk("outcome");
    replies.bulk(match redeemed.outcome {
        Outcome::Refunded => "refunded",
        Outcome::Unchanged => "unchanged",
        Outcome::Expired => "expired",
    });
    replies.bulk("limits");
    replies.array(redeemed.limits.len());
    for Refunded { units, status: limit_status } in &redeemed.limits {
        replies.map(3);
        replies.bulk("limit");
        replies.bulk(limit_status.limit.name());
        for (name, number) in [("refunded", *units), ("remaining", limit_status.remaining)] {
            replies.bulk(name);
            replies.integer(number as i64);
        }
    }
}

/// Replies that the store did not answer.
pub(super) fn reply_failure(error: StoreError, replies: &mut Replies) {
    replies.error(format!("ERR {error}"));
}

struct Answer {
    is_admitted: bool,
    source: DecisionSource,
    receipt: Option<String>,
}

impl Answer {
    fn write(self, evaluation: &Evaluation, replies: &mut Replies) {
        replies.map(5);
        replies.bulk("admitted");
        replies.integer(i64::from(self.is_admitted));
        replies.bulk("retry_after_ms");
        match evaluation.retry_after().filter(|_| !self.is_admitted) {
            Some(wait) => replies.integer(wait.get() as i64),
            None => replies.nothing(),
        }
        replies.bulk("source");
        replies.bulk(match self.source {
            DecisionSource::Store => "store",
            DecisionSource::DenyCache => "deny_cache",
            DecisionSource::Overflow => "overflow",
            DecisionSource::Fallback(_) => "fallback",
            DecisionSource::Failure(_) => "failure",
        });
        replies.bulk("receipt");
        match self.receipt {
            Some(receipt) => replies.bulk(receipt),
            None => replies.nothing(),
        }
        replies.bulk("statuses");
        reply_statuses(evaluation, replies);
    }
}

fn write_status(limit_status: &LimitStatus, replies: &mut Replies) {
    let is_reserved = limit_status.reserved > 0;
    replies.map(6 + usize::from(is_reserved));
    replies.bulk("limit");
    replies.bulk(limit_status.limit.name());
    let numbers = [
        ("quota", limit_status.limit.capacity()),
        ("used", limit_status.used),
        ("remaining", limit_status.remaining),
        ("resets_at_ms", limit_status.resets_at.as_millis()),
        ("admits", u64::from(limit_status.admission == Admission::Now)),
    ];
    let reserved = is_reserved.then_some(("reserved", limit_status.reserved));
    for (name, number) in numbers.into_iter().chain(reserved) {
        replies.bulk(name);
        // The number is at most 2^53, so the cast is exact.
        replies.integer(number as i64);
    }
}

fn binding<'p>(policy: &'p Policy, name: &str) -> Option<&'p LimitBinding> {
    policy.limits().iter().find(|binding| binding.limit.name() == name)
}

/// Returns the pairs with the dimensions that the limit `binding` counts by. If `binding` is
/// `None`, because the policy has no such limit, returns all of `pairs`.
fn subject_values<'a>(
    policy: &Policy,
    binding: Option<&LimitBinding>,
    pairs: &[Pair<'a>],
) -> Vec<Pair<'a>> {
    let Some(binding) = binding else { return pairs.to_vec() };
    let is_counted = |(name, _): &&Pair<'a>| policy.uses_value(binding, name);
    pairs.iter().filter(is_counted).copied().collect()
}

/// Reads pairs of a dimension and a value. An empty value means that the client has no value.
fn pairs<'a>(args: &[&'a [u8]]) -> Result<Vec<Pair<'a>>, String> {
    let (pairs, rest) = args.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("ERR a dimension has no value: write dimension and value in turn".to_owned());
    }
    let mut read: Vec<Pair<'a>> = Vec::with_capacity(pairs.len());
    for [name, value] in pairs {
        let (name, value) = (text(name, "dimension")?, text(value, "value")?);
        if read.iter().any(|(one, _)| *one == name) {
            return Err(format!(
                "ERR the dimension \"{}\" is there twice",
                echoed(name.as_bytes())
            ));
        }
        read.push((name, Some(value).filter(|value| !value.is_empty())));
    }
    Ok(read)
}

/// Returns the error reply if the policy does not have one of the limits, or if a limit is present
/// twice.
pub(super) fn unknown_limit(policy: &Policy, named: &[(&str, Cost)]) -> Option<String> {
    let mut named = named.iter().enumerate().map(|(index, (name, _))| (&named[..index], *name));
    named.find_map(|(before, name)| {
        if binding(policy, name).is_none() {
            return Some(format!("ERR there is no limit \"{}\"", echoed(name.as_bytes())));
        }
        let is_twice = before.iter().any(|(one, _)| *one == name);
        is_twice.then(|| format!("ERR the limit \"{name}\" is there twice"))
    })
}

pub(super) fn text<'a>(word: &'a [u8], what: &str) -> Result<&'a str, String> {
    std::str::from_utf8(word).map_err(|_| format!("ERR the {what} is not UTF-8"))
}

/// Parses a number of whole units. `what` is the name of the number in the error reply.
pub(super) fn units(word: &[u8], what: &str) -> Result<Cost, String> {
    // Digits only: no sign, no fraction, no exponent.
    let digits = word.iter().all(u8::is_ascii_digit).then_some(word);
    let units = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    units.and_then(Cost::new).ok_or_else(|| {
        format!("ERR the {what} \"{}\" is not a whole number from 0 to {MAX_EXACT}", echoed(word))
    })
}
