//! `tollgate shards`: lists the shards of a policy, finds the shard of a subject, and plans and
//! follows rebalances.

use std::path::{Path, PathBuf};

use clap::Args;
use tollgate_backend::hash_key;
use tollgate_policy::{LoadedPolicy, RedisSettings, StoreSettings};
use tollgate_redis::function_library;

use crate::failure::Failure;
use crate::limiter;
use crate::output::{Form, print};
use crate::shards::{follow, home, list, plan};

/// List the shards of a policy, find the shard of a subject, plan and follow a rebalance
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(long, value_name = "FILE", required_unless_present = "library")]
    policy: Option<PathBuf>,
    /// Print the library of functions that this version calls in Redis, for `FUNCTION LOAD`
    #[arg(long, conflicts_with_all = ["policy", "home", "plan", "follow", "json"])]
    library: bool,
    /// Print the shard of a subject, such as user=42 or token=abc,route=/search
    #[arg(long, value_name = "NAME=VALUE,…", value_delimiter = ',', value_parser = home::pair)]
    home: Vec<home::Pair>,
    /// Print which subjects would move to the shards of this policy, and how to begin
    #[arg(long, value_name = "FILE", conflicts_with = "home")]
    plan: Option<PathBuf>,
    /// Follow the rebalance from `store.redis.previous` until it is done
    #[arg(long, conflicts_with_all = ["home", "plan"])]
    follow: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let Some(policy) = &flags.policy else { return print(function_library()) };
    let loaded = limiter::load(policy)?;
    let redis = redis(&loaded, policy)?;
    let form = if flags.json { Form::Json } else { Form::Text };
    if !flags.home.is_empty() {
        let key = hash_key(&loaded.settings.key)?;
        return print(&home::render(&loaded.policy, redis, &key, &flags.home, form)?);
    }
    if let Some(path) = &flags.plan {
        let other = limiter::load(path)?;
        let key = hash_key(&loaded.settings.key)?;
        return print(&plan::render(redis, self::redis(&other, path)?, &key, form)?);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    if flags.follow {
        return runtime.block_on(follow::run(&loaded, form));
    }
    runtime.block_on(list::run(&loaded, redis, form))
}

fn redis<'l>(loaded: &'l LoadedPolicy, path: &Path) -> Result<&'l RedisSettings, Failure> {
    match &loaded.settings.store {
        StoreSettings::Redis(redis) => Ok(redis),
        _ => {
            Err(format!("{}: the policy has no shards: add them to store.redis", path.display())
                .into())
        }
    }
}
