//! On which shard a subject lives.

use serde_json::json;
use tollgate::HashKey;
use tollgate::core::Cost;
use tollgate::core::policy::{LimitBinding, NameError, Named, Policy};
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

/// Reads `name=value`.
pub(crate) fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.is_empty() => {
            Ok(Pair { name: name.trim().to_owned(), value: value.to_owned() })
        }
        _ => Err("a subject is written as name=value".to_owned()),
    }
}

/// The shard of each limit that counts per nothing but `pairs`, hashed as its charges are.
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
        format!("{limit:width$}  {subject} lives on {shard}\n")
    };
    Ok(rows.iter().map(line).collect())
}

/// Whether each of `pairs` is of a dimension of the policy, and of another one than those before.
fn check(policy: &Policy, pairs: &[Pair]) -> Result<(), String> {
    for (place, Pair { name, .. }) in pairs.iter().enumerate() {
        let known: Vec<_> = policy.dimensions().iter().map(|known| &*known.name).collect();
        if !known.contains(&&**name) {
            let known = known.join(", ");
            return Err(format!("the policy has no subject {name:?}; it has {known}"));
        }
        if pairs[..place].iter().any(|before| before.name == *name) {
            return Err(format!("{name:?} is given twice: a subject has one value of each"));
        }
    }
    Ok(())
}

/// Says what could have been given.
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
        return "every limit of this policy is on everybody: none has subjects".to_owned();
    }
    let (given, known) = (given.join(" and "), known.join(", or "));
    format!(
        "no limit counts per {given} alone; give as NAME=VALUE all that one counts per: {known}"
    )
}

/// The subject of this limit; `None` if it counts per something that is not given.
fn subject(
    policy: &Policy,
    limit: &str,
    key: &HashKey,
    pairs: &[Pair],
) -> Result<Option<tollgate::core::Subject>, NameError> {
    let mut given: Vec<_> = pairs.iter().map(|it| (&*it.name, Some(&*it.value))).collect();
    loop {
        let named = Named { limit, cost: Cost::ONE, subject: &given };
        match policy.plan_named([named], key) {
            // A limit on everybody says nothing of this subject.
            Ok(_) if given.is_empty() => return Ok(None),
            Ok(plan) => return Ok(plan.planned.into_iter().next().map(|it| it.subject)),
            Err((_, NameError::Missing(_))) => return Ok(None),
            Err((_, NameError::Dimension(foreign))) => given.retain(|(name, _)| **name != *foreign),
            Err((_, error)) => return Err(error),
        }
    }
}
