//! Describes the store of a policy in words, for `tollgate check`.

use super::memcached;
use crate::settings::{
    DecisionClock, DenyCacheMode, KeySource, MemoryBounds, MigrationStoreSettings, OnMove,
    ReadFrom, RedisSettings, RolloutSettings, SentinelAccess, ShadowSettings, ShardSettings,
    StepForm, StoreSettings, TlsFiles, Topology,
};

/// Returns the rows that describe the store. Each row has a title and a description. Less important
/// settings are left out if they have their default value.
pub(crate) fn store(store: &StoreSettings) -> Vec<(&'static str, String)> {
    match store {
        StoreSettings::Memory(bounds) => memory_rows(*bounds),
        StoreSettings::Redis(redis) => rows(redis),
        StoreSettings::Memcached(memcached) => memcached::rows(memcached),
        StoreSettings::Rollout(rollout) => rollout_rows(rollout),
        StoreSettings::Shadow(shadow) => shadow_rows(shadow),
    }
}

fn side(side: &MigrationStoreSettings) -> Vec<(&'static str, String)> {
    match side {
        MigrationStoreSettings::Memory(bounds) => memory_rows(*bounds),
        MigrationStoreSettings::Redis(redis) => rows(redis),
        MigrationStoreSettings::Memcached(memcached) => memcached::rows(memcached),
    }
}

fn memory_rows(bounds: MemoryBounds) -> Vec<(&'static str, String)> {
    let MemoryBounds { max_entries, max_bytes } = bounds;
    let bounds = format!("at most {max_entries} counters in {max_bytes} bytes");
    vec![("memory", format!("of this process, {bounds}"))]
}

fn rollout_rows(rollout: &RolloutSettings) -> Vec<(&'static str, String)> {
    let moved = match rollout.on_move {
        OnMove::Transfer => "clients that move keep their usage",
        OnMove::Reset => "clients that move start from zero",
    };
    let mut rows =
        vec![("rollout", format!("`to` decides for {} of clients; {moved}", rollout.percent))];
    rows.push(("from", "the store that clients move from:".to_owned()));
    rows.extend(side(&rollout.from));
    rows.push(("to", "the store that clients move to:".to_owned()));
    rows.extend(side(&rollout.to));
    rows
}

fn shadow_rows(shadow: &ShadowSettings) -> Vec<(&'static str, String)> {
    let compared = format!("{} of clients are compared with another store", shadow.percent);
    let mut rows = vec![("shadow", compared)];
    rows.extend(side(&shadow.store));
    rows.push(("compared", "with:".to_owned()));
    rows.extend(side(&shadow.compared_with));
    rows
}

/// The largest number of shards that the description names.
const MAX_NAMED: usize = 8;

fn rows(redis: &RedisSettings) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("redis", shards(&redis.shards)),
        ("routing", routing(redis)),
        ("decision", decision(redis)),
        ("reads", reads(redis)),
        ("outage", outage(redis)),
    ];
    if redis.remember_refusals == DenyCacheMode::Disabled {
        rows.push(("deny cache", "off: every refusal is a store call".to_owned()));
    }
    if let Some(previous) = &redis.previous {
        rows.insert(1, ("moving", format!("from {}", shards(&previous.shards))));
    }
    if let Some(sentinels) = sentinels(redis) {
        rows.insert(1, ("sentinels", sentinels));
    }
    if let Some(access) = access(redis.user.as_deref(), redis.password.as_ref()) {
        rows.push(("access", access));
    }
    if let Some(certificates) = certificates(&redis.tls) {
        rows.push(("tls", certificates));
    }
    if !redis.revealed.is_empty() {
        rows.push((
            "revealed",
            format!("subjects of {} are readable in keys", redis.revealed.join(", ")),
        ));
    }
    rows
}

/// Describes the shards of a store, for example `2 shards (a, b weight 2)`.
fn shards(shards: &[ShardSettings]) -> String {
    let one = |shard: &ShardSettings| match shard.weight.get() {
        1 => kind(shard),
        weight => format!("{} weight {weight}", kind(shard)),
    };
    let mut named: Vec<String> = shards.iter().take(MAX_NAMED).map(one).collect();
    if shards.len() > MAX_NAMED {
        named.push("…".to_owned());
    }
    format!("{} ({})", count(shards.len(), "shard"), named.join(", "))
}

/// Describes one shard by its name, for example `a`, or `cluster c` for a Redis Cluster.
fn kind(shard: &ShardSettings) -> String {
    match shard.topology {
        Topology::Cluster { .. } => format!("cluster {}", shard.name),
        Topology::Static { .. } | Topology::Sentinel { .. } => shard.name.to_string(),
    }
}

fn routing(redis: &RedisSettings) -> String {
    match &redis.route_by {
        Some(subject) => format!("by {subject}, or by the first subject of the limit"),
        None => "by the first subject of each limit".to_owned(),
    }
}

fn decision(redis: &RedisSettings) -> String {
    let step = match redis.step {
        StepForm::Automatic => "",
        StepForm::Tables => ", in the server module with tables",
        StepForm::Function => ", as a function",
        StepForm::Script => ", as a script",
    };
    let clock = match redis.clock {
        DecisionClock::Application => "this node's clock",
        DecisionClock::Store => "the shard's clock",
    };
    format!("within {}ms, by {clock}{step}", redis.deadline.as_millis())
}

fn reads(redis: &RedisSettings) -> String {
    let named = |shard: &ShardSettings| match &shard.topology {
        Topology::Static { replicas, .. } => replicas.len(),
        Topology::Sentinel { .. } | Topology::Cluster { .. } => 0,
    };
    let replicas: usize = redis.shards.iter().map(named).sum();
    let are_watched = redis.shards.iter().any(is_sentinel_managed);
    match redis.reads {
        ReadFrom::Replicas if are_watched && replicas > 0 => {
            format!("from {}, and those that sentinels announce", count(replicas, "replica"))
        }
        ReadFrom::Replicas if are_watched => "from the replicas that sentinels announce".to_owned(),
        ReadFrom::Replicas if replicas > 0 => format!("from {}", count(replicas, "replica")),
        _ => "from primaries".to_owned(),
    }
}

/// Returns whether sentinels announce the servers of the shard.
fn is_sentinel_managed(shard: &ShardSettings) -> bool {
    matches!(shard.topology, Topology::Sentinel { .. })
}

/// Describes the services that sentinels monitor for the shards of `redis`. Returns `None` if no
/// shard has sentinels.
fn sentinels(redis: &RedisSettings) -> Option<String> {
    let services = redis.shards.iter().filter_map(|shard| match &shard.topology {
        Topology::Sentinel { sentinels, service, .. } => {
            Some(format!("{service} by {}", count(sentinels.len(), "sentinel")))
        }
        Topology::Static { .. } | Topology::Cluster { .. } => None,
    });
    let services: Vec<String> = services.take(MAX_NAMED).collect();
    if services.is_empty() {
        return None;
    }
    let SentinelAccess { user, password, tls } = &redis.sentinel;
    let text = [access(user.as_deref(), password.as_ref()), certificates(tls)];
    let text = std::iter::once(services.join(", ")).chain(text.into_iter().flatten());
    Some(text.collect::<Vec<_>>().join(", "))
}

fn outage(redis: &RedisSettings) -> String {
    match redis.nodes.get() {
        1 => "while a shard is down, this node admits the whole of each limit".to_owned(),
        nodes => format!("while a shard is down, this node admits 1/{nodes} of each limit"),
    }
}

fn access(user: Option<&str>, password: Option<&KeySource>) -> Option<String> {
    let password = password.map(|source| match source {
        KeySource::Environment { name } => format!("the password in ${name}"),
        KeySource::File { path } => format!("the password in {}", path.display()),
        KeySource::Random => "no password".to_owned(),
    });
    match (user, password) {
        (Some(user), Some(password)) => Some(format!("as {user}, with {password}")),
        (Some(user), None) => Some(format!("as {user}")),
        (None, Some(password)) => Some(format!("with {password}")),
        (None, None) => None,
    }
}

fn certificates(tls: &TlsFiles) -> Option<String> {
    let authorities = tls.authorities.as_ref();
    let authorities = authorities.map(|path| format!("trusts {}", path.display()));
    let identity = tls.identity.as_ref();
    let identity = identity.map(|own| format!("presents {}", own.certificate.display()));
    let text: Vec<String> = authorities.into_iter().chain(identity).collect();
    (!text.is_empty()).then(|| text.join(", "))
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    const POLICY: &str = "
secret: { file: /run/key }
subjects: { token: { header: authorization } }
limits: { core: { quota: 5, window: 1h, per: token, reveal: true } }
rules: [{ match: { has: token }, limits: core }]
";

    fn text(store: &str) -> String {
        let loaded = crate::parse("shop.yaml", &format!("{POLICY}{store}")).unwrap();
        let text = crate::explain(&loaded).to_string();
        text.split_once("store\n").unwrap().1.to_owned()
    }

    #[test]
    fn one_server_is_said_in_few_words() {
        let expected = "  \
  redis     1 shard (a)
  routing   by the first subject of each limit
  decision  within 15ms, by this node's clock
  reads     from primaries
  outage    while a shard is down, this node admits the whole of each limit
  revealed  subjects of core are readable in keys
";
        assert_eq!(text("store: { redis: { shards: { a: { primary: 'redis://h' } } } }"), expected);
    }

    #[test]
    fn a_fleet_is_explained_without_its_passwords() {
        let store = "
store:
  redis:
    shards:
      a: { primary: 'rediss://canary:canary@h', replicas: 'redis://i' }
      b: { primary: 'redis://j', weight: 2, replicas: ['redis://k', 'redis://l'] }
    nodes: 3
    deadline: 1s5ms
    route_by: token
    clock: store
    deny_cache: false
    scripting: script
    user: tollgate
    password: { env: TOLLGATE_REDIS_PASSWORD }
    tls: { ca: ca.pem, certificate: client.pem, key: client-key.pem }
";
        let expected = "  \
  redis       2 shards (a, b weight 2)
  routing     by token, or by the first subject of the limit
  decision    within 1005ms, by the shard's clock, as a script
  reads       from 3 replicas
  outage      while a shard is down, this node admits 1/3 of each limit
  deny cache  off: every refusal is a store call
  access      as tollgate, with the password in $TOLLGATE_REDIS_PASSWORD
  tls         trusts ca.pem, presents client.pem
  revealed    subjects of core are readable in keys
";
        assert_eq!(text(store), expected);
    }

    #[test]
    fn sentinels_are_explained_without_their_passwords() {
        let store = "
store:
  redis:
    shards:
      a: { sentinels: ['redis://canary:canary@h:26379', 'redis://i:26379'], service: north }
      b: { sentinels: 'redis://i:26379', service: south }
    sentinel: { user: watcher, password: { file: /run/watcher } }
";
        let expected = "  \
  redis      2 shards (a, b)
  sentinels  north by 2 sentinels, south by 1 sentinel, as watcher, with the password in /run/watcher
  routing    by the first subject of each limit
  decision   within 15ms, by this node's clock
  reads      from the replicas that sentinels announce
  outage     while a shard is down, this node admits the whole of each limit
  revealed   subjects of core are readable in keys
";
        assert_eq!(text(store), expected);
    }

    #[test]
    fn many_shards_are_not_all_named() {
        let shard = |index| format!("s{index}: {{ primary: 'redis://h{index}' }}, ");
        let shards: String = (0..9).map(shard).collect();
        let text = text(&format!("store: {{ redis: {{ shards: {{ {shards} }} }} }}"));
        assert!(text.contains("9 shards (s0, s1, s2, s3, s4, s5, s6, s7, …)"), "{text}");
    }
}
