//! The policy files of the scenario `changing-world`.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use super::sentinels::{MonitoredPair, Sentinels};
use crate::error::ChaosError;
use crate::memcached::MemcachedServer;
use crate::policy::{NODES, scripting, text};
use crate::site::Site;

/// The policy files of the scenario `changing-world`, which have the same secret and different
/// stores. At first the store is memcached; later it is replaced by shards with sentinels.
#[derive(Debug)]
pub(crate) struct Files {
    secret: PathBuf,
    old: String,
    /// Each shard's name and settings.
    shards: Vec<(&'static str, String)>,
}

impl Files {
    /// The deadline of a decision. This deadline is long enough to transfer a subject's state on a
    /// busy machine. If the server of a store dies, the nodes detect the failure at once, without
    /// waiting for the deadline.
    pub(crate) const DEADLINE: Duration = Duration::from_millis(500);

    /// Creates policies for a memcached server and these shards.
    pub(crate) fn new(
        site: &Site,
        old: &MemcachedServer,
        sentinels: &Sentinels,
        watched: &[MonitoredPair],
    ) -> Result<Self, ChaosError> {
        let secret = site.room()?.join("secret");
        fs::write(&secret, by_chance()).map_err(|error| ChaosError::File(secret.clone(), error))?;
        let (at, deadline) = (old.address(), Self::DEADLINE.as_millis());
        let shard = |MonitoredPair { name, .. }: &MonitoredPair| (*name, sentinels.words(name));
        Ok(Self {
            secret,
            old: format!(
                "{{ memcached: {{ servers: ['{at}'], nodes: {NODES}, deadline: {deadline}ms }} }}"
            ),
            shards: watched.iter().map(shard).collect(),
        })
    }

    /// Returns the policy with `percent` of the subjects in the shards, and the other subjects in
    /// memcached.
    pub(crate) fn rolled_out(&self, percent: u64) -> String {
        self.rollout(percent, &map(&self.shards))
    }

    /// Returns the policy with all subjects in the shards and one added shard, which consists of a
    /// primary at `url`.
    pub(crate) fn with_shard(&self, name: &'static str, url: &str) -> String {
        let added = (name, format!("{{ primary: '{url}' }}"));
        let all: Vec<_> = self.shards.iter().cloned().chain([added]).collect();
        let stays: Vec<_> = self.shards.iter().map(|(name, _)| (*name, "{}".to_owned())).collect();
        self.rollout(100, &format!("{}, previous: {{ {} }}", map(&all), map(&stays)))
    }

    fn rollout(&self, percent: u64, shards: &str) -> String {
        let (old, deadline, scripting) = (&self.old, Self::DEADLINE.as_millis(), scripting());
        // Without a deny cache, every request reaches the store.
        let store = format!(
            "{{ rollout: {{ percent: {percent}%, from: {old}, to: {{ redis: {{ {shards}, \
             nodes: {NODES}, deadline: {deadline}ms, deny_cache: false, \
             scripting: {scripting} }} }} }} }}"
        );
        format!("{}secret: {{ file: '{}' }}\n", text(&store), self.secret.display())
    }
}

/// Returns a random secret for the run.
fn by_chance() -> String {
    let word = |_| RandomState::new().hash_one(0_u8);
    (0..4).map(word).map(|word| format!("{word:016x}")).collect()
}

fn map(shards: &[(&'static str, String)]) -> String {
    let shards: Vec<_> = shards.iter().map(|(name, words)| format!("{name}: {words}")).collect();
    format!("shards: {{ {} }}", shards.join(", "))
}
