//! The policies in the folder `policies/`, and the limits that they apply to requests.

use std::net::IpAddr;
use std::path::PathBuf;

use tollgate_core::algo::Anchor;
use tollgate_core::policy::descriptors::{Descriptor, DescriptorOutcome, Hits, Limited};
use tollgate_core::policy::shedding::InFlightBound;
use tollgate_core::policy::{JsonPointer, OnFailure, PlannedCharge, Priority};
use tollgate_core::{
    Algorithm, Cost, Headers, KeyedHash, Millis, Percent, Policy, Refusals, RequestAttributes,
};
use tollgate_policy::{
    KeySource, LoadedPolicy, MigrationStoreSettings, ShardSettings, StoreSettings, Topology, load,
    parse,
};

struct Fold;

impl KeyedHash for Fold {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let fold = |sum: u128, byte: &u8| sum.wrapping_mul(257).wrapping_add(u128::from(*byte));
        bytes.iter().fold(1, fold).to_le_bytes()
    }
}

fn policy(name: &str) -> Policy {
    loaded(name).policy
}

fn loaded(name: &str) -> LoadedPolicy {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../policies").join(name);
    let loaded = load(&path).unwrap_or_else(|error| panic!("{error}"));
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.is_empty(), "{}", warnings.join("\n"));
    loaded
}

/// Returns the rules that match a request, followed by its charges. Each charge is written as its
/// limit, its subject and the cost.
fn met(policy: &Policy, method: &str, path: &str, headers: &[(&str, &[u8])]) -> String {
    let peer: Option<IpAddr> = "192.0.2.7".parse().ok();
    let headers: &dyn Headers = &Fields(headers);
    let plan = policy
        .plan(&RequestAttributes { method, path, query: None, host: None, peer, headers }, &Fold);
    let rules: Vec<&str> = plan.rules.iter().map(|rule| &*rule.name).collect();
    let charges: Vec<String> = plan
        .enforced
        .iter()
        .map(|planned| {
            let names: Vec<&str> = planned.subject.pairs().map(|(name, _)| name).collect();
            format!("{}/{} {}", planned.limit.name(), names.join("+"), planned.cost.get())
        })
        .collect();
    format!("{}: {}", rules.join(" "), charges.join(", "))
}

struct Fields<'a>(&'a [(&'a str, &'a [u8])]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.iter().filter(|(field, _)| *field == name).nth(index).map(|(_, value)| *value)
    }
}

#[test]
fn github() {
    let policy = policy("github.yaml");
    let token: &[(&str, &[u8])] = &[("authorization", b"Bearer x")];
    let read = "read: core/token 1, concurrent/token 1, points/token 1, time/token 1";
    let write = "write: core/token 1, concurrent/token 1, points/token 5, time/token 1";
    for (method, path, headers, expected) in [
        ("GET", "/repos/a/b", token, read),
        ("HEAD", "/repos/a/b", token, read),
        (
            "POST",
            "/repos/a/b",
            token,
            "create: core/token 1, concurrent/token 1, points/token 5, content/token 1, \
             contents/token 1, time/token 1",
        ),
        ("DELETE", "/repos/a/b", token, write),
        (
            "POST",
            "/graphql",
            token,
            "graphql: graphql/token 1, concurrent/token 1, queries/token 1, time/token 1, \
             query-time/token 1",
        ),
        (
            "GET",
            "/search/code",
            token,
            "search: search/token 1, concurrent/token 1, points/token 1, time/token 1",
        ),
        ("GET", "/repos/a/b", &[], "stranger: anonymous/address 1"),
        ("POST", "/search/code", &[], "stranger: anonymous/address 1"),
    ] {
        assert_eq!(met(&policy, method, path, headers), expected, "{method} {path}");
    }
    assert_eq!(policy.answers().refund_statuses, [304]);
    assert_eq!(policy.answers().status_path.as_deref(), Some("/rate_limit"));
    let anonymous = policy.limits().iter().find(|limit| limit.limit.name() == "anonymous").unwrap();
    assert_eq!((anonymous.limit.capacity(), anonymous.limit.resource()), (60, "core"));
    assert_eq!(anonymous.limit.window().to_string(), "1h");
}

#[test]
fn github_in_redis() {
    let plain = policy("github.yaml");
    let loaded = loaded("github-redis.yaml");
    // The same policy with another store.
    assert_eq!(format!("{:?}", loaded.policy), format!("{plain:?}"));
    let secret = KeySource::Environment { name: "TOLLGATE_SECRET".to_owned() };
    assert_eq!(loaded.settings.key, secret);
    let StoreSettings::Redis(redis) = loaded.settings.store else { panic!("it is in memory") };
    let servers = |shard: &ShardSettings| match &shard.topology {
        Topology::Static { primary, replicas } => format!("{primary} {}", replicas.join(" ")),
        Topology::Sentinel { .. } | Topology::Cluster { .. } => panic!("{shard:?}"),
    };
    let servers: Vec<(&str, String)> =
        redis.shards.iter().map(|shard| (&*shard.name, servers(shard))).collect();
    let expected = [
        ("a", "redis://127.0.0.1:7101 redis://127.0.0.1:7201".to_owned()),
        ("b", "redis://127.0.0.1:7102 redis://127.0.0.1:7202".to_owned()),
    ];
    assert_eq!(servers, expected);
    assert_eq!(redis.route_by.as_deref(), Some("token"));
}

#[test]
fn layered() {
    let policy = policy("layered.yaml");
    let address = "address-second/address 1, address-minute/address 1, address-hour/address 1";
    let user = "user-second/user 1, user-minute/user 1, user-hour/user 1";
    assert_eq!(met(&policy, "GET", "/", &[]), format!("everybody: {address}"));
    let signed_in = met(&policy, "GET", "/", &[("x-user", b"42")]);
    assert_eq!(signed_in, format!("everybody signed-in: {address}, {user}"));
    let quotas: Vec<String> = policy
        .limits()
        .iter()
        .map(|limit| format!("{}/{}", limit.limit.capacity(), limit.limit.window()))
        .collect();
    assert_eq!(quotas, ["10/1s", "120/1m", "240/1h", "10/1s", "120/1m", "240/1h"]);
}

#[test]
fn sign_in() {
    let policy = policy("sign-in.yaml");
    let account: &[(&str, &[u8])] = &[("x-account", b"alice")];
    for (method, path, headers, expected) in [
        (
            "POST",
            "/login",
            account,
            "sign-in: account-attempts/account 1, address-attempts/address 1",
        ),
        ("POST", "/login/", &[], "sign-in-without-account: address-attempts/address 1"),
        ("GET", "/login", account, ": "),
        ("POST", "/other", account, ": "),
    ] {
        assert_eq!(met(&policy, method, path, headers), expected, "{method} {path}");
    }
    assert!(policy.rules().iter().all(|rule| rule.on_failure == OnFailure::Deny));
    for path in ["/LOGIN", "/Login/", "/login;x", "/LOGIN;a=1;b", "//login", "/%6cogin", "/login;/"]
    {
        let counted = "sign-in: account-attempts/account 1, address-attempts/address 1";
        for method in ["POST", "post"] {
            assert_eq!(met(&policy, method, path, account), counted, "{method} {path}");
        }
    }
    let many = format!("/{}{}login", "a/".repeat(257), "../".repeat(257));
    for path in ["/x%2f..%2flogin", "/login\\", "/login%5c", "/login%00", "/x/..;/login", &many] {
        let headers: &dyn Headers = &Fields(account);
        let attributes = RequestAttributes {
            method: "POST",
            path,
            query: None,
            host: None,
            peer: None,
            headers,
        };
        assert!(policy.plan(&attributes, &Fold).ambiguity.is_some(), "{path}");
    }
    assert!(policy.limits().iter().all(|limit| limit.limit.refusals() == Refusals::Counted));
}

/// Returns the limits that a descriptor with a count of one matches in the domain `edge`.
fn met_by_descriptor(policy: &Policy, entries: &[(&str, &str)]) -> String {
    let descriptor = Descriptor { entries, hits: Hits::Charge(Cost::ONE), rate: None };
    let plan = policy.plan_descriptors("edge", &[descriptor], &Fold);
    match &plan.descriptors[0].outcome {
        DescriptorOutcome::Limited(Limited { limit, subject, .. }) => {
            format!("{} {subject}", limit.name())
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn envoy() {
    let policy = policy("envoy.yaml");
    let address: &[(&str, &str)] = &[("remote_address", "192.0.2.7")];
    for (entries, expected) in [
        (address, "per-address remote_address=192.0.2.7, domain=edge"),
        (&[("api_key", "k")], "per-key api_key=k, domain=edge"),
        (
            &[("api_key", "k"), ("path", "/reports")],
            "reports api_key=k, path=/reports, domain=edge",
        ),
        (&[("api_key", "k"), ("path", "/")], "Unmatched"),
        (&[("generic_key", "closed")], "Blocked"),
    ] {
        assert_eq!(met_by_descriptor(&policy, entries), expected, "{entries:?}");
    }
}

/// Returns the priority of a request.
fn priority(policy: &Policy, method: &str, path: &str, headers: &[(&str, &[u8])]) -> Priority {
    let headers: &dyn Headers = &Fields(headers);
    policy
        .plan(
            &RequestAttributes { method, path, query: None, host: None, peer: None, headers },
            &Fold,
        )
        .priority
}

#[test]
fn stripe() {
    let policy = policy("stripe.yaml");
    let key: &[(&str, &[u8])] = &[("authorization", b"Bearer sk_live")];
    let test: &[(&str, &[u8])] = &[("authorization", b"Bearer sk_test"), ("x-mode", b"test")];
    let limits = "rate/key 1, concurrent/key 1";
    for (method, path, headers, rule, matters) in [
        ("POST", "/v1/charges", key, "charge", Priority::Critical),
        ("POST", "/v1/charges/ch_1/capture", key, "charge", Priority::Critical),
        ("GET", "/v1/charges", key, "user", Priority::Read),
        ("POST", "/v1/customers", key, "user", Priority::Write),
        ("POST", "/v1/charges", test, "test", Priority::Test),
    ] {
        assert_eq!(
            met(&policy, method, path, headers),
            format!("{rule}: {limits}"),
            "{method} {path}"
        );
        assert_eq!(priority(&policy, method, path, headers), matters, "{method} {path}");
    }
    assert_eq!(met(&policy, "GET", "/", &[]), "stranger: anonymous/address 1");
    let shedding = policy.shedding();
    let fleet = shedding.fleet().unwrap();
    let places = |priority| -> Vec<(String, u64)> {
        let planned = policy.fleet_plan(&fleet, priority);
        let reply = |it: &PlannedCharge| (it.limit.name().to_owned(), it.limit.capacity());
        planned.iter().map(reply).collect()
    };
    let pools = [("shed.fleet".to_owned(), 200), ("shed.fleet.noncritical".to_owned(), 160)];
    assert_eq!(places(Priority::Critical), pools[..1]);
    assert_eq!(places(Priority::Write), pools);
    let worker = shedding.worker().unwrap();
    assert_eq!(worker.in_flight, Some(InFlightBound::Fixed(100.try_into().unwrap())));
    assert_eq!(worker.queue_delay, Some(Millis::new(100)));
    assert_eq!(worker.loop_delay, Some(Millis::new(50)));
}

#[test]
fn requests_may_wait_although_a_limit_counts_refused_requests() {
    let text = "
limits:
  core: { quota: 5, window: 1h, count_refused: true }
  flight: { algorithm: concurrency, quota: 5 }
rules:
  - { limits: [core, flight], queue: { wait: 2s } }
";
    let policy = parse("shop.yaml", text).unwrap_or_else(|error| panic!("{error}")).policy;
    assert_eq!(policy.rules()[0].queue.unwrap().wait, Millis::from_secs(2));
}

/// The headers of a request with a JSON body. The body contains these pairs of a pointer and a
/// value.
struct Body<'a>(&'a [(&'a str, &'a str)]);

impl Headers for Body<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == "authorization" && index == 0).then_some(b"Bearer k")
    }

    fn in_body(&self, pointer: &JsonPointer) -> Option<String> {
        let (_, value) = self.0.iter().find(|(at, _)| *at == pointer.as_str())?;
        Some((*value).to_owned())
    }
}

#[test]
fn llm_tokens() {
    let policy = policy("llm-tokens.yaml");
    let met = |body: &[(&str, &str)]| {
        let headers: &dyn Headers = &Body(body);
        let (method, path) = ("POST", "/v1/chat/completions");
        let plan = policy.plan(
            &RequestAttributes { method, path, query: None, host: None, peer: None, headers },
            &Fold,
        );
        let planned = plan.enforced.iter().map(|planned| {
            let whom = planned.subject.pairs().count();
            format!("{}/{whom} {}", planned.limit.name(), planned.cost.get())
        });
        planned.collect::<Vec<_>>().join(", ")
    };
    assert!(policy.reads_bodies());
    let small = ("/model", "small");
    let summary = met(&[small, ("/max_tokens", "100")]);
    assert_eq!(summary, "requests/1 1, tokens/1 256, model-tokens/2 256");
    assert_eq!(met(&[small]), "requests/1 1, tokens/1 4096, model-tokens/2 4096");
    assert_eq!(met(&[("/max_tokens", "0")]), "requests/1 1, tokens/1 256");
    assert_eq!(met(&[("/max_tokens", "300")]), "requests/1 1, tokens/1 300");
    assert_eq!(met(&[("/max_tokens", "999999")]), "requests/1 1, tokens/1 32768");
}

#[test]
fn migration() {
    let StoreSettings::Rollout(rollout) = loaded("migration.yaml").settings.store else {
        panic!("no rollout");
    };
    assert_eq!(rollout.percent, Percent::new(10).unwrap());
    assert!(matches!(rollout.from, MigrationStoreSettings::Memcached(_)));
    assert!(matches!(rollout.to, MigrationStoreSettings::Redis(_)));
}

#[test]
fn calendar() {
    let policy = policy("calendar.yaml");
    let customer: &[(&str, &[u8])] = &[("x-customer", b"acme")];
    for (path, headers, expected) in [
        (
            "/reports/1",
            customer,
            "reports: reports/customer 1, month/customer 1, day/customer 1, burst/customer 1",
        ),
        ("/", customer, "customers: month/customer 1, day/customer 1, burst/customer 1"),
        ("/", &[], "trial: trial/address 1"),
    ] {
        assert_eq!(met(&policy, "GET", path, headers), expected, "{path}");
    }
    let names = policy.limits().iter().filter_map(|limit| match limit.limit.algorithm() {
        Algorithm::FixedWindow(window) => match window.anchor() {
            Anchor::Scheduled(schedule) => Some(schedule.name()),
            Anchor::FirstRequest | Anchor::Calendar => None,
        },
        _ => None,
    });
    let names: Vec<&str> = names.collect();
    let expected = [
        "month from day 15 in Europe/Berlin",
        "day in Europe/Berlin",
        "week from Sunday in America/New_York",
        "day in UTC",
    ];
    assert_eq!(names, expected);
}

#[test]
fn users_of_each_plan_have_their_quotas() {
    let policy = policy("plans.yaml");
    let paid: &[(&str, &[u8])] = &[("x-user", b"ann"), ("x-plan", b"pro")];
    let charged = "users: requests/user 1, in-flight/user 1";
    assert_eq!(met(&policy, "GET", "/", paid), charged);
    for (index, pro, default) in [(0, 6_000, 30), (1, 20, 2)] {
        let limit = &policy.limits()[index].limit;
        let quotas = policy.quotas_of(limit).unwrap();
        assert_eq!((quotas.of(b"pro").unwrap().capacity(), limit.capacity()), (pro, default));
    }
}

#[test]
fn tenants_have_the_quotas_of_their_plans() {
    let policy = policy("tenants.yaml");
    let acme: &[(&str, &[u8])] = &[("x-org", b"acme")];
    let charged = met(&policy, "POST", "/exports", acme);
    assert_eq!(charged, "exports: requests/org 1, exports/org 1");
    let limit = &policy.limits()[0].limit;
    let quotas = policy.quotas_of(limit).unwrap();
    assert_eq!((quotas.of(b"pro").unwrap().capacity(), quotas.is_by_tenant()), (6_000, true));
}

#[test]
fn every_policy_is_spoken_of_here() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let spoken_of = [
        "calendar.yaml",
        "envoy.yaml",
        "github-redis.yaml",
        "github.yaml",
        "layered.yaml",
        "llm-tokens.yaml",
        "migration.yaml",
        "plans.yaml",
        "sign-in.yaml",
        "stripe.yaml",
        "tenants.yaml",
    ];
    assert_eq!(names, spoken_of);
}

#[test]
fn the_policy_in_the_book_can_be_used() {
    let book = include_str!("../../../../docs/policy.md");
    let (mut policies, mut stores) = (Vec::new(), 0);
    for block in book.split("```yaml\n").skip(1) {
        let (text, _) = block.split_once("```").unwrap();
        let is_store = text.contains("store:");
        let text = match policies.first() {
            Some(policy) if is_store => &format!("{policy}{text}"),
            _ => text,
        };
        if text.contains("rules:") {
            let loaded = parse("docs/policy.md", text).unwrap_or_else(|error| panic!("{error}"));
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
            stores += usize::from(matches!(loaded.settings.store, StoreSettings::Redis(_)));
            policies.push(text.to_owned());
        }
    }
    assert_eq!((policies.len(), stores), (2, 1));
}
