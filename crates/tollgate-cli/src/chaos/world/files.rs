//! What the policy files of the world that changes say of their store.

use std::time::Duration;

use super::memcached::MemcachedServer;
use super::sentinels::{Sentinels, Watched};
use crate::chaos::policy::NODES;

/// The words of the stores: an old one in memcached, and shards under sentinels that replace it.
#[derive(Debug)]
pub(crate) struct Files {
    old: String,
    /// Each shard's name and words.
    shards: Vec<(&'static str, String)>,
}

impl Files {
    /// Long enough to carry a cell on a busy machine; a store that dies is told of at once.
    pub(crate) const DEADLINE: Duration = Duration::from_millis(500);

    /// The words for a memcached and these shards.
    pub(crate) fn new(old: &MemcachedServer, sentinels: &Sentinels, watched: &[Watched]) -> Self {
        let (at, deadline) = (old.address(), Self::DEADLINE.as_millis());
        let shard = |Watched { name, .. }: &Watched| (*name, sentinels.words(name));
        Self {
            old: format!(
                "{{ memcached: {{ servers: ['{at}'], nodes: {NODES}, deadline: {deadline}ms }} }}"
            ),
            shards: watched.iter().map(shard).collect(),
        }
    }

    /// All subjects live in memcached; the shards are there, and have none.
    pub(crate) fn first(&self) -> String {
        self.rollout(0, &map(&self.shards))
    }

    /// All subjects live in the shards, to which another one comes, a primary at `url`.
    pub(crate) fn with_shard(&self, name: &'static str, url: &str) -> String {
        let added = (name, format!("{{ primary: '{url}' }}"));
        let all: Vec<_> = self.shards.iter().cloned().chain([added]).collect();
        let stays: Vec<_> = self.shards.iter().map(|(name, _)| (*name, "{}".to_owned())).collect();
        self.rollout(100, &format!("{}, previous: {{ {} }}", map(&all), map(&stays)))
    }

    fn rollout(&self, percent: u8, shards: &str) -> String {
        let (old, deadline) = (&self.old, Self::DEADLINE.as_millis());
        // Every refusal is asked for, so that the store is asked all the time.
        format!(
            "{{ rollout: {{ percent: {percent}%, from: {old}, to: {{ redis: {{ {shards}, \
             nodes: {NODES}, deadline: {deadline}ms, remember_refusals: false }} }} }} }}"
        )
    }
}

fn map(shards: &[(&'static str, String)]) -> String {
    let shards: Vec<_> = shards.iter().map(|(name, words)| format!("{name}: {words}")).collect();
    format!("shards: {{ {} }}", shards.join(", "))
}
