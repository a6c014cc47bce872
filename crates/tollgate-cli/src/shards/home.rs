//! Finds the shard of a subject.

use serde_json::json;
use tollgate::HashKey;
use tollgate::model::Cost;
use tollgate::model::policy::{LimitBinding, NameError, Named, Policy};
use tollgate_backend::locate;
use tollgate_policy::RedisSettings;

use crate::failure::Failure;
use crate::output::Form;

/// A dimension and its value.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    name: String,
    value: String,
}

/// Parses `name=value`.
pub(crate) fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.is_empty() => {
            Ok(Pair { name: name.trim().to_owned(), value: value.to_owned() })
        }
        _ => Err("expected a subject as name=value".to_owned()),
    }
}

/// Returns a text with the shard of the subject for each limit that counts only by the dimensions
/// in `pairs`. The values are hashed in the same way as the values of charges.
///
/// # Errors
/// A message if the policy does not have a dimension in `pairs`, or if no limit counts only by
/// these dimensions.
pub(crate) fn render(
    policy: &Policy,
    redis: &RedisSettings,
    key: &HashKey,
    pairs: &[Pair],
    form: Form,
) -> Result<String, Failure> {
    check(policy, pairs)?;
    let mut rows = Vec::new();
    for limit in policy.limits() {
        let name = limit.limit.name();
        if let Some(subject) = subject(policy, name, key, pairs)? {
            let (shard, version) = locate(redis, key, &subject)?;
            rows.push((name, subject.to_string(), shard, version));
        }
    }
    if rows.is_empty() {
        return Err(nothing_counts_per(policy, pairs).into());
    }
    if form == Form::Json {
        let row = |(limit, subject, shard, version): &(&str, String, Box<str>, _)| {
            json!({
                "limit": limit,
                "subject": subject,
                "shard": &**shard,
                "map": format!("{version}"),
            })
        };
        return Ok(format!("{:#}\n", json!(rows.iter().map(row).collect::<Vec<_>>())));
    }
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or_default();
    let line = |(limit, subject, shard, _): &(&str, String, Box<str>, _)| {
        format!("{limit:width$}  {subject} is on {shard}\n")
    };
    Ok(rows.iter().map(line).collect())
}

/// Checks that each of `pairs` names a dimension of the policy, and that no dimension occurs twice.
fn check(policy: &Policy, pairs: &[Pair]) -> Result<(), String> {
    for (index, Pair { name, .. }) in pairs.iter().enumerate() {
        let known: Vec<_> = policy.dimensions().iter().map(|known| &*known.name).collect();
        if !known.contains(&&**name) {
            let known = known.join(", ");
            return Err(format!("the policy has no subject {name:?}; it has {known}"));
        }
        if pairs[..index].iter().any(|before| before.name == *name) {
            return Err(format!("duplicate {name:?}: a subject has one value for each"));
        }
    }
    Ok(())
}

/// Returns the error message that lists the dimensions by which limits count.
fn nothing_counts_per(policy: &Policy, pairs: &[Pair]) -> String {
    let given: Vec<_> = pairs.iter().map(|pair| &*pair.name).collect();
    let counts = |limit: &LimitBinding| {
        let per = limit.per.iter().filter_map(|index| policy.dimensions().get(*index));
        let per: Vec<_> = per.map(|dimension| &*dimension.name).collect();
        (!per.is_empty()).then(|| per.join(" and "))
    };
    let mut known: Vec<_> = policy.limits().iter().filter_map(counts).collect();
    known.sort_unstable();
    known.dedup();
    if known.is_empty() {
        return "no limit of this policy has subjects".to_owned();
    }
    let (given, known) = (given.join(" and "), known.join(", or "));
    format!(
        "no limit counts by {given} alone; give a NAME=VALUE for all subjects of a limit: {known}"
    )
}

/// Returns the subject of `limit`, or `None` if the limit also counts by a dimension that is not
/// given.
fn subject(
    policy: &Policy,
    limit: &str,
    key: &HashKey,
    pairs: &[Pair],
) -> Result<Option<tollgate::model::Subject>, NameError> {
    let mut given: Vec<_> = pairs.iter().map(|it| (&*it.name, Some(&*it.value))).collect();
    loop {
        let named = Named { limit, cost: Cost::ONE, subject: &given };
        match policy.plan_named([named], key) {
            // A limit that counts by none of the given dimensions is not related to the subject.
            Ok(_) if given.is_empty() => return Ok(None),
            Ok(plan) => return Ok(plan.planned.into_iter().next().map(|it| it.subject)),
            Err((_, NameError::Missing(_))) => return Ok(None),
            Err((_, NameError::Dimension(foreign))) => given.retain(|(name, _)| **name != *foreign),
            Err((_, error)) => return Err(error),
        }
    }
}
