//! The settings of `store.redis` and their defaults.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_policy::{
    DecisionClock, DenyCacheMode, KeySource, LoadedPolicy, PreviousShardMap, ReadFrom,
    RedisSettings, SentinelAccess, ShardSettings, StepForm, StoreSettings, TlsFiles, TlsIdentity,
    Topology, Transport, parse,
};

const POLICY: &str = "
secret: { env: TOLLGATE_SECRET }
subjects: { token: { header: authorization }, address: { client_address: {} } }
limits:
  core: { quota: 5, window: 1h, per: token, reveal: true }
  all: { quota: 5, window: 1h, per: address, reveal: false }
rules: [{ match: { has: token }, limits: core }, { limits: all }]
";

fn loaded(store: &str) -> LoadedPolicy {
    let text = format!("{POLICY}store: {{ redis: {{ {store} }} }}\n");
    parse("shop.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn redis(store: &str) -> RedisSettings {
    match loaded(store).settings.store {
        StoreSettings::Redis(redis) => *redis,
        other => panic!("{other:?}"),
    }
}

fn shard(name: &str, primary: &str, replicas: &[&str], weight: u32) -> ShardSettings {
    ShardSettings {
        name: name.into(),
        topology: Topology::Static {
            primary: primary.into(),
            replicas: replicas.iter().map(|url| (*url).into()).collect(),
        },
        weight: NonZeroU32::new(weight).unwrap(),
    }
}

#[test]
fn one_server_is_enough() {
    let expected = RedisSettings {
        shards: vec![shard("a", "redis://h", &[], 1)],
        route_by: None,
        previous: None,
        deadline: Duration::from_millis(15),
        nodes: NonZeroU32::MIN,
        clock: DecisionClock::Application,
        reads: ReadFrom::Replicas,
        remember_refusals: DenyCacheMode::Enabled,
        step: StepForm::Automatic,
        user: None,
        password: None,
        tls: TlsFiles::default(),
        sentinel: SentinelAccess::default(),
        revealed: vec!["core".into()],
    };
    assert_eq!(redis("shards: { a: { primary: 'redis://h' } }"), expected);
    assert_eq!(loaded("shards: { a: { primary: 'redis://h' } }").warnings, []);
}

#[test]
fn every_word_has_its_setting() {
    let settings = redis(
        "
  shards: {
    b: { primary: 'rediss://h:1', replicas: 'redis://h:2' },
    a: { primary: 'unix:///run/a.sock', replicas: ['valkey://[::1]:1', 'valkeys://h/3'], weight: 2 },
  },
  nodes: 3,
  deadline: 10s,
  route_by: token,
  clock: store,
  reads: primaries,
  deny_cache: false,
  scripting: script,
  user: tollgate,
  password: { file: /run/secrets/redis },
  tls: { ca: ca.pem, certificate: client.pem, key: client-key.pem },
",
    );
    let expected = RedisSettings {
        shards: vec![
            shard("b", "rediss://h:1", &["redis://h:2"], 1),
            shard("a", "unix:///run/a.sock", &["valkey://[::1]:1", "valkeys://h/3"], 2),
        ],
        route_by: Some("token".into()),
        previous: None,
        deadline: Duration::from_secs(10),
        nodes: NonZeroU32::new(3).unwrap(),
        clock: DecisionClock::Store,
        reads: ReadFrom::Primaries,
        remember_refusals: DenyCacheMode::Disabled,
        step: StepForm::Script,
        user: Some("tollgate".into()),
        password: Some(KeySource::File { path: PathBuf::from("/run/secrets/redis") }),
        tls: TlsFiles {
            authorities: Some("ca.pem".into()),
            identity: Some(TlsIdentity {
                certificate: "client.pem".into(),
                key: "client-key.pem".into(),
            }),
        },
        sentinel: SentinelAccess::default(),
        revealed: vec!["core".into()],
    };
    assert_eq!(settings, expected);
}

#[test]
fn sentinels_name_the_servers_of_a_shard() {
    let settings = redis(
        "
  shards: {
    a: { sentinels: ['redis://h:26379', 'rediss://watcher@i:26380'], service: limits-a },
    b: { topology: sentinel, sentinels: 'redis://h:26379', service: limits-b, transport: tls, weight: 2 },
    c: { topology: static, primary: 'redis://j' },
  },
  user: tollgate,
  sentinel: { user: watcher, password: { env: WATCHER }, tls: { ca: ca.pem } },
",
    );
    let watched = |sentinels: &[&str], service: &str, transport| Topology::Sentinel {
        sentinels: sentinels.iter().map(|url| (*url).into()).collect(),
        service: service.into(),
        transport,
    };
    let topologies: Vec<_> = settings.shards.iter().map(|shard| shard.topology.clone()).collect();
    let a = ["redis://h:26379", "rediss://watcher@i:26380"];
    let expected = [
        watched(&a, "limits-a", Transport::Tcp),
        watched(&a[..1], "limits-b", Transport::Tls),
        shard("c", "redis://j", &[], 1).topology,
    ];
    assert_eq!(topologies, expected);
    let access = SentinelAccess {
        user: Some("watcher".into()),
        password: Some(KeySource::Environment { name: "WATCHER".to_owned() }),
        tls: TlsFiles { authorities: Some("ca.pem".into()), identity: None },
    };
    assert_eq!(settings.sentinel, access);
    assert_eq!((settings.user.as_deref(), settings.password), (Some("tollgate"), None));
}

#[test]
fn words_for_what_is_usual_change_nothing() {
    let shards = "shards: { a: { primary: 'redis://h', replicas: [], weight: 1 } }";
    let explanation = redis(&format!(
        "{shards}, nodes: 1, deadline: 15ms, clock: node, reads: replicas, \
         deny_cache: true, scripting: auto"
    ));
    assert_eq!(explanation, redis(shards));
    let function = redis(&format!("{shards}, scripting: function, password: {{ env: PASSWORD }}"));
    assert_eq!(function.step, StepForm::Function);
    assert_eq!(function.password, Some(KeySource::Environment { name: "PASSWORD".to_owned() }));
}

/// The reader accepts the same URLs as the store.
#[test]
fn urls_name_servers() {
    for (url, is_right) in [
        ("redis://10.0.0.1:6379", true),
        ("redis://user@host/3?protocol=3", true),
        ("rediss://[2001:db8::1]:7000/", true),
        ("valkey://host", true),
        ("valkeys://host?protocol=resp2", true),
        ("unix:///run/redis.sock?db=2&user=tollgate&protocol=2", true),
        ("redis+unix:///run/redis.sock", true),
        ("valkey+unix:///run/redis.sock", true),
        ("", false),
        ("host", false),
        ("host:6379", false),
        ("http://host", false),
        ("redis-sentinel://host", false),
        ("redis://", false),
        ("redis:host", false),
        ("redis://host:70000", false),
        ("redis://host/name", false),
        ("redis://host?db=2", false),
        ("redis://host?protocol=4", false),
        ("redis://host#insecure", false),
        ("redis://a%ff@host", false),
        ("unix://", false),
        ("unix://run/redis.sock", false),
        ("unix:///run/redis.sock?db=x", false),
        ("unix:///run/redis.sock?color=red", false),
    ] {
        let text =
            format!("{POLICY}store: {{ redis: {{ shards: {{ a: {{ primary: '{url}' }} }} }} }}\n");
        assert_eq!(parse("shop.yaml", &text).is_ok(), is_right, "{url}");
    }
}

#[test]
fn numbers_have_their_bounds() {
    for (words, is_right) in [
        ("nodes: 0", false),
        ("nodes: 1_000_000", true),
        ("nodes: 1_000_001", false),
        ("deadline: 4ms", true),
        ("deadline: 10s1ms", false),
        ("deadline: 0ms", false),
    ] {
        let shards = "shards: { a: { primary: 'redis://h' } }";
        let text = format!("{POLICY}store: {{ redis: {{ {shards}, {words} }} }}\n");
        assert_eq!(parse("shop.yaml", &text).is_ok(), is_right, "{words}");
    }
    for (weight, is_right) in [("1_048_576", true), ("1_048_577", false), ("0", false)] {
        let shards = format!("shards: {{ a: {{ primary: 'redis://h', weight: {weight} }} }}");
        let text = format!("{POLICY}store: {{ redis: {{ {shards} }} }}\n");
        assert_eq!(parse("shop.yaml", &text).is_ok(), is_right, "{weight}");
    }
}

/// The bug: the file was accepted, but no decision within such a deadline was sent to Redis.
#[test]
fn a_deadline_in_which_redis_is_never_used_was_accepted() {
    let shards = "shards: { a: { primary: 'redis://h' } }";
    for millis in 1..4 {
        let text = format!("{POLICY}store: {{ redis: {{ {shards}, deadline: {millis}ms }} }}\n");
        let mistakes = parse("shop.yaml", &text).unwrap_err().to_string();
        assert!(mistakes.contains("no decision reaches the servers"), "{mistakes}");
    }
    let text = format!("{POLICY}store: {{ memcached: {{ servers: 'h:1', deadline: 1ms }} }}\n");
    assert!(parse("shop.yaml", &text).is_ok(), "memcached has no such margin");
}

#[test]
fn shards_and_replicas_are_as_many_as_may_be() {
    let shards = |count: usize| {
        let shard = |index| format!("    s{index}: {{ primary: 'redis://h{index}' }}\n");
        format!(
            "{POLICY}store:\n  redis:\n   shards:\n{}",
            (0..count).map(shard).collect::<String>()
        )
    };
    assert!(parse("shop.yaml", &shards(1_024)).is_ok());
    let mistakes = parse("shop.yaml", &shards(1_025)).unwrap_err();
    assert_eq!(mistakes.findings()[0].message(), "1025 shards");
    let replicas = |count: usize| {
        let urls: Vec<String> = (0..count).map(|index| format!("'redis://r{index}'")).collect();
        let shard = format!("{{ primary: 'redis://h', replicas: [{}] }}", urls.join(", "));
        format!("{POLICY}store: {{ redis: {{ shards: {{ a: {shard} }} }} }}\n")
    };
    assert!(parse("shop.yaml", &replicas(16)).is_ok());
    let mistakes = parse("shop.yaml", &replicas(17)).unwrap_err();
    assert_eq!(mistakes.findings()[0].message(), "17 replicas of one primary");
}

#[test]
fn no_password_is_shown() {
    for url in
        ["redis://u:canary@h", "redis://u:canary@h:x", "unix:///s?pass=canary", "no://:canary@h"]
    {
        let text =
            format!("{POLICY}store: {{ redis: {{ shards: {{ a: {{ primary: '{url}' }} }} }} }}\n");
        let explanation = match parse("shop.yaml", &text) {
            Ok(loaded) => format!("{loaded:?} {}", loaded.warnings[0]),
            Err(mistakes) => mistakes.to_string(),
        };
        assert!(
            explanation.contains("primary") && !explanation.contains("canary"),
            "{explanation}"
        );
    }
}

#[test]
fn nodes_are_a_cluster() {
    let settings =
        redis("shards: { a: { nodes: ['redis://h:7000', 'redis://i:7000'], weight: 2 } }");
    let nodes = vec!["redis://h:7000".into(), "redis://i:7000".into()];
    let explanation = redis(
        "shards: { a: { topology: cluster, nodes: ['redis://h:7000', 'redis://i:7000'], weight: 2 } }",
    );
    assert_eq!(settings.shards[0].topology, Topology::Cluster { nodes });
    assert_eq!(settings, explanation);
}

#[test]
fn a_map_that_is_left_names_what_stays_by_its_name_alone() {
    let settings = redis(
        "shards: { a: { primary: 'redis://h' }, c: { primary: 'redis://k' } }, \
         previous: { shards: { a: { weight: 3 }, b: { primary: 'redis://i' } } }",
    );
    let expected = PreviousShardMap {
        shards: vec![shard("a", "redis://h", &[], 3), shard("b", "redis://i", &[], 1)],
        route_by: None,
    };
    assert_eq!(settings.previous, Some(expected));
}

#[test]
fn a_map_that_cannot_be_left_is_a_mistake() {
    let a = "a: { primary: 'redis://h' }";
    for (previous, reply) in [
        ("{ shards: { a: {} } }", "no subject moves"),
        ("{ shards: {} }", "`shards` is empty"),
        (
            "{ shards: { a: { primary: 'redis://i' }, b: { primary: 'redis://j' } } }",
            "different servers",
        ),
        ("{ shards: { b: { primary: 'redis://h' } } }", "duplicate server"),
        ("{ shards: { b: {} } }", "needs `primary`"),
        ("{ route_by: token }", "needs `shards`"),
    ] {
        let text =
            format!("{POLICY}store: {{ redis: {{ shards: {{ {a} }}, previous: {previous} }} }}\n");
        let mistakes = parse("shop.yaml", &text).unwrap_err().to_string();
        assert!(mistakes.contains(reply), "{previous}: {mistakes}");
    }
}
