//! Previews of the assignment of subjects to shards, and of the moves that another shard map would
//! cause.

use std::collections::BTreeMap;
use std::fmt;

use tollgate::HashKey;
use tollgate::model::{Subject, Value};
use tollgate_policy::{RedisSettings, ShardSettings};
use tollgate_stores::sharded::{MapVersion, ShardsError};
use tollgate_stores::{Shard, Sharded};

use super::map::routing;

/// The number of subjects in the sample of a [`ShardPlan`].
pub const SAMPLE: u32 = 100_000;

/// A preview of the subjects that a change of the shard map would move.
#[derive(Clone, Debug)]
pub struct ShardPlan {
    /// The version of the current map.
    pub from: MapVersion,
    /// The version of the new map.
    pub to: MapVersion,
    /// The number of sampled subjects, out of [`SAMPLE`], that would move to another shard.
    pub moved: u32,
    /// The number of moved subjects for each pair of shards. The largest number is the first.
    pub flows: Vec<Flow>,
}

/// The number of subjects that would move from one shard to another shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The shard that owns the subjects now.
    pub from: Box<str>,
    /// The shard that would own the subjects.
    pub to: Box<str>,
    /// The number of sampled subjects, out of [`SAMPLE`], that would move.
    pub subjects: u32,
}

/// The error for shards that are not a valid map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(ShardsError);

impl ShardPlan {
    /// Computes the subjects that move if the shards of `to` replace the shards of `from`. Both
    /// maps use the same `key`.
    ///
    /// # Errors
    /// [`PlanError`] if the shards of `from` or of `to` are not a valid shard map.
    pub fn new(from: &RedisSettings, to: &RedisSettings, key: &HashKey) -> Result<Self, PlanError> {
        let (old, new) = (map(from, key)?, map(to, key)?);
        let mut flows = BTreeMap::<_, u32>::new();
        for number in 0..SAMPLE {
            let subject = sampled(number, from, to, key);
            let partitions = (&*old.shard_for(&subject).name, &*new.shard_for(&subject).name);
            if partitions.0 != partitions.1 {
                *flows.entry(partitions).or_default() += 1;
            }
        }
        let flow = |((from, to), subjects): ((&str, &str), u32)| Flow {
            from: from.into(),
            to: to.into(),
            subjects,
        };
        let mut flows: Vec<_> = flows.into_iter().map(flow).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.subjects));
        let moved = flows.iter().map(|flow| flow.subjects).sum();
        Ok(Self { from: old.version(), to: new.version(), moved, flows })
    }
}

/// Returns the name of the shard of `redis` that owns `subject`, and the version of the shard map.
/// `key` hashes the subject.
///
/// # Errors
/// [`PlanError`] if the settings are not a valid shard map.
pub fn locate(
    redis: &RedisSettings,
    key: &HashKey,
    subject: &Subject,
) -> Result<(Box<str>, MapVersion), PlanError> {
    let map = map(redis, key)?;
    Ok((map.shard_for(subject).name.clone(), map.version()))
}

fn map(redis: &RedisSettings, key: &HashKey) -> Result<Sharded<()>, PlanError> {
    let shard = |shard: &ShardSettings| Shard {
        name: shard.name.clone(),
        weight: shard.weight.get(),
        store: (),
    };
    let map = Sharded::new(key.clone(), redis.shards.iter().map(shard)).map_err(PlanError)?;
    Ok(map.with_routing(routing(redis.route_by.as_deref())))
}

/// Returns a subject for the sample. The subject has a pair for each name by which one of the two
/// maps selects shards.
fn sampled(number: u32, from: &RedisSettings, to: &RedisSettings, key: &HashKey) -> Subject {
    let routes = [Some("sample"), from.route_by.as_deref(), to.route_by.as_deref()];
    let mut names: Vec<&str> = routes.into_iter().flatten().collect();
    names.dedup();
    let values: Vec<String> = names.iter().map(|name| format!("{name} {number}")).collect();
    let pairs = names.iter().zip(&values);
    Subject::new(pairs.map(|(name, value)| (*name, Value::Clear(value.as_bytes()))), key)
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store.redis.shards: {}", self.0)
    }
}

impl std::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::endpoints::tests::redis;

    #[test]
    fn an_added_shard_takes_its_fair_share_and_nothing_else_moves() {
        let key = HashKey::from_secret(b"the same on every node");
        let plan = ShardPlan::new(&redis(&["a", "b"]), &redis(&["a", "b", "c"]), &key).unwrap();
        assert!(plan.flows.iter().all(|flow| &*flow.to == "c"), "{plan:?}");
        let third = SAMPLE / 3;
        assert!(plan.moved.abs_diff(third) < SAMPLE / 100, "{plan:?}");
        assert_ne!(plan.from, plan.to);
    }

    #[test]
    fn the_same_map_moves_nobody() {
        let key = HashKey::from_secret(b"the same on every node");
        let plan = ShardPlan::new(&redis(&["a", "b"]), &redis(&["b", "a"]), &key).unwrap();
        assert_eq!((plan.moved, plan.from), (0, plan.to));
    }

    #[test]
    fn another_routing_moves_whoever_it_sends_elsewhere() {
        let key = HashKey::from_secret(b"the same on every node");
        let mut routed = redis(&["a", "b"]);
        routed.route_by = Some("token".into());
        let plan = ShardPlan::new(&redis(&["a", "b"]), &routed, &key).unwrap();
        assert!(plan.moved.abs_diff(SAMPLE / 2) < SAMPLE / 100, "{plan:?}");
    }
}
