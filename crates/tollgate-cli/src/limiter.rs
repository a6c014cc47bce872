//! From a policy file to a limiter: the only place that knows which store a policy names.

use std::path::Path;

use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate::{HashKey, Limiter};
use tollgate_policy::{KeySource, Loaded, MemoryBounds};

use crate::cmd::Failure;

/// Loads the policy at `path`; what works, but hardly as it was meant, is told on standard error.
pub(crate) fn load(path: &Path) -> Result<Loaded, Failure> {
    let loaded = tollgate_policy::load(path)?;
    for warning in &loaded.warnings {
        eprintln!("{warning}\n");
    }
    Ok(loaded)
}

/// A limiter with the store and the key that the file names.
pub(crate) fn build(loaded: Loaded) -> Result<Limiter<Memory>, Failure> {
    let store = Memory::new(bounds(loaded.settings.store.memory()));
    Ok(Limiter::new(loaded.policy, store).with_key(key(&loaded.settings.key)?))
}

/// The bounds of the store in memory; a number beyond what this machine can address is no bound.
pub(crate) fn bounds(memory: MemoryBounds) -> Bounds {
    let fit = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Bounds { max_entries: fit(memory.max_entries), max_bytes: fit(memory.max_bytes) }
}

fn key(source: &KeySource) -> Result<HashKey, Failure> {
    let secret = match source {
        KeySource::Random => return Ok(HashKey::random()),
        KeySource::Environment { name } => std::env::var(name)
            .map_err(|error| format!("the key in the environment variable {name}: {error}"))?
            .into_bytes(),
        KeySource::File { path } => std::fs::read(path)
            .map_err(|error| format!("the key in the file {}: {error}", path.display()))?,
    };
    let secret = secret.trim_ascii();
    if secret.len() < SHORTEST_SECRET {
        let length = secret.len();
        let message = format!(
            "the key has {length} bytes: {SHORTEST_SECRET} are the least that cannot be guessed; \
             make one with `openssl rand -hex 16`"
        );
        return Err(message.into());
    }
    Ok(HashKey::from_secret(secret))
}

/// Bytes of the shortest secret that is taken for one.
const SHORTEST_SECRET: usize = 16;
