//! The schema and the reference, which are generated from the same declarations as the reader.
//!
//! `UPDATE=1 cargo test -p tollgate-policy schema` rewrites both.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tollgate_policy::{parse, schema};

const BEGIN: &str = "<!-- the keys: written by `UPDATE=1 cargo test -p tollgate-policy` -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_committed_schema_is_that_of_the_reader() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/policy.schema.json");
    compare_or_update(&path, &schema());
}

#[test]
fn the_reference_has_every_key() {
    let path = root().join("docs/policy.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (prose, _) = written.split_once(BEGIN).expect("the reference marks where its keys begin");
    compare_or_update(&path, &format!("{prose}{BEGIN}{}", reference()));
}

#[test]
fn every_policy_fits_the_schema() {
    let validator = validator();
    for entry in std::fs::read_dir(root().join("policies")).unwrap() {
        let path = entry.unwrap().path();
        let value = yaml(&std::fs::read_to_string(&path).unwrap());
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {}", path.display(), errors.join("\n"));
    }
}

/// A mapping for each type of mapping in a policy file, in the order of the reference. Each
/// contains an unknown key.
const PLACES: [(&str, &str); 46] = [
    ("PolicyFile", "zzzzzzzz: 1"),
    ("Subject", "subjects: { a: { host: {}, zzzzzzzz: 1 } }"),
    ("Forwarded", "forwarded: { zzzzzzzz: 1 }"),
    ("Paths", "paths: { zzzzzzzz: 1 }"),
    ("NetworkFile", "networks: { a: { zzzzzzzz: 1 } }"),
    ("Jwt", "jwt: { zzzzzzzz: 1 }"),
    ("Limit", "limits: { a: { quota: 1, window: 1s, zzzzzzzz: 1 } }"),
    (
        "ByValue",
        "limits: { a: { quota: { by: a, values: { b: 1 }, default: 1, zzzzzzzz: 1 }, window: 1s } }",
    ),
    (
        "DayBySubject",
        "limits: { a: { quota: 1, window: month, billing_day: { by: a, default: 1, zzzzzzzz: 1 } } }",
    ),
    ("Candidate", "limits: { a: { quota: 1, window: 1s, candidate: { zzzzzzzz: 1 } } }"),
    ("Metered", "limits: { a: { quota: 1, window: 1s, cost: { zzzzzzzz: 1 } } }"),
    (
        "ReserveFrom",
        "limits: { a: { quota: 1, window: 1s, cost: { reserve: { default: 1, zzzzzzzz: 1 } } } }",
    ),
    ("Reservation", "limits: { a: { quota: 1, window: 1s, reservation: { zzzzzzzz: 1 } } }"),
    ("Rule", "rules: [{ limits: [], zzzzzzzz: 1 }]"),
    ("Conditions", "rules: [{ limits: [], match: { zzzzzzzz: 1 } }]"),
    ("ValueForm", "rules: [{ limits: [], match: { header: { a: { zzzzzzzz: 1 } } } }]"),
    ("Queue", "rules: [{ limits: core, queue: { zzzzzzzz: 1 } }]"),
    ("Count", "limits: { core: { quota: 1, count: { status: 401, zzzzzzzz: 1 } } }"),
    ("DescriptorDomain", "descriptors: [{ domain: a, tree: [], zzzzzzzz: 1 }]"),
    ("DescriptorNode", "descriptors: [{ domain: a, tree: [{ key: a, zzzzzzzz: 1 }] }]"),
    ("Answers", "answers: { zzzzzzzz: 1 }"),
    ("Refunds", "answers: { refund: { zzzzzzzz: 1 } }"),
    ("RefuseAnswer", "answers: { refuse: { zzzzzzzz: 1 } }"),
    ("RefusalBody", "answers: { refuse: { body: { zzzzzzzz: 1 } } }"),
    ("Shed", "shed: { zzzzzzzz: 1 }"),
    ("Fleet", "shed: { fleet: { capacity: 9, zzzzzzzz: 1 } }"),
    ("Worker", "shed: { worker: { zzzzzzzz: 1 } }"),
    (
        "Adaptive",
        "shed: { worker: { adaptive: { algorithm: aimd, min: 1, max: 2, zzzzzzzz: 1 } } }",
    ),
    ("Tenants", "tenants: { by: a, zzzzzzzz: 1 }"),
    ("Secret", "secret: { env: A, zzzzzzzz: 1 }"),
    ("Store", "store: { zzzzzzzz: 1 }"),
    ("Memory", "store: { memory: { zzzzzzzz: 1 } }"),
    ("Redis", "store: { redis: { shards: {}, zzzzzzzz: 1 } }"),
    ("Shard", "store: { redis: { shards: { a: { primary: a, zzzzzzzz: 1 } } } }"),
    ("Previous", "store: { redis: { shards: {}, previous: { shards: {}, zzzzzzzz: 1 } } }"),
    ("Memcached", "store: { memcached: { servers: a, zzzzzzzz: 1 } }"),
    ("Rollout", "store: { rollout: { percent: 1%, from: {}, to: {}, zzzzzzzz: 1 } }"),
    ("Shadow", "store: { shadow: { store: {}, shadow_store: {}, zzzzzzzz: 1 } }"),
    ("Side", "store: { shadow: { store: { zzzzzzzz: 1 }, shadow_store: {} } }"),
    ("Serve", "serve: { zzzzzzzz: 1 }"),
    ("Dashboard", "serve: { dashboard: { zzzzzzzz: 1 } }"),
    ("Listener", "serve: { http: { listen: a, zzzzzzzz: 1 } }"),
    ("ListenerTls", "serve: { http: { listen: a, tls: { certificate: a, key: a, zzzzzzzz: 1 } } }"),
    ("Traces", "traces: { zzzzzzzz: 1 }"),
    ("SentinelAccess", "store: { redis: { shards: {}, sentinel: { zzzzzzzz: 1 } } }"),
    ("Tls", "store: { redis: { shards: {}, tls: { zzzzzzzz: 1 } } }"),
];

#[test]
fn the_reader_and_the_schema_know_the_same_keys() {
    let objects = objects();
    let places: BTreeSet<&str> = PLACES.iter().map(|(name, _)| *name).collect();
    let described: BTreeSet<&str> = objects.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(places, described);
    for (name, text) in PLACES {
        let known = known(text);
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let described: BTreeSet<&str> =
            properties(object(&objects, name)).keys().map(String::as_str).collect();
        assert_eq!(known, described, "{name}");
    }
}

/// Returns the known keys that the reader lists for the unknown key in `text`, in the order of
/// their declaration.
fn known(text: &str) -> Vec<String> {
    let mistakes = parse("keys.yaml", text).unwrap_err();
    let unknown = mistakes.findings().iter().find(|one| one.message().contains("zzzzzzzz"));
    let hint = unknown.and_then(|one| one.hint()).unwrap_or_else(|| panic!("{mistakes}"));
    let keys = hint.strip_prefix("expected one of ").unwrap_or_else(|| panic!("{hint}"));
    keys.split(", ").map(str::to_owned).collect()
}

/// The reader and the schema accept the same values and reject the same values.
#[test]
fn the_reader_and_the_schema_agree_on_values() {
    let validator = validator();
    for (value, key, is_right) in [
        ("5000", "quota", true),
        ("5_000", "quota", true),
        ("-1", "quota", false),
        ("1.5", "quota", false),
        ("[]", "quota", false),
        ("9007199254740991", "quota", true),
        ("9007199254740992", "quota", false),
        ("1h", "window", true),
        ("1h30m", "window", true),
        ("30m1h", "window", false),
        ("10", "window", false),
        ("1 hour", "window", false),
        ("fixed_window", "algorithm", true),
        ("fixed", "algorithm", false),
        ("true", "visible", true),
        ("maybe", "visible", false),
        ("core", "resource", true),
        ("requests", "unit", true),
        ("points", "unit", false),
    ] {
        let mut limit = vec![("quota", "7"), ("window", "1m")];
        limit.retain(|(other, _)| *other != key);
        limit.push((key, value));
        let limit: Vec<String> =
            limit.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let text =
            format!("limits: {{ a: {{ {} }} }}\nrules: [{{ limits: a }}]\n", limit.join(", "));
        assert_eq!(parse("a.yaml", &text).is_ok(), is_right, "reader on {text}");
        assert_eq!(validator.is_valid(&yaml(&text)), is_right, "schema on {text}");
    }
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(&schema()).unwrap()).unwrap()
}

/// Parses a document as an editor's YAML reader does.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn compare_or_update(path: &Path, expected: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, expected).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(written == expected, "{path} is out of date: run with UPDATE=1 and commit it");
}

/// Returns the mappings of the schema, the whole file first.
fn objects() -> Vec<(String, Value)> {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let definitions = schema["$defs"].as_object().unwrap().clone();
    let mut objects = vec![("PolicyFile".to_owned(), schema)];
    objects.extend(definitions.into_iter().filter(|(_, value)| value.get("properties").is_some()));
    objects
}

fn properties(object: &Value) -> &Map<String, Value> {
    object["properties"].as_object().unwrap()
}

fn object<'o>(objects: &'o [(String, Value)], name: &str) -> &'o Value {
    objects.iter().find(|(other, _)| other == name).map(|(_, object)| object).unwrap()
}

/// Returns the reference of the policy file as tables: the keys, and the words that some keys
/// accept.
fn reference() -> String {
    let objects = objects();
    let mut text = String::new();
    for (name, place) in PLACES {
        let object = object(&objects, name);
        let title = title(name);
        writeln!(text, "\n## {title}\n\n{}\n", object["description"].as_str().unwrap()).unwrap();
        text.push_str("| key | meaning |\n| --- | --- |\n");
        for key in known(place) {
            let property = &properties(object)[&key];
            let about = property["description"].as_str().unwrap();
            writeln!(text, "| `{key}` | {about}{} |", words(property)).unwrap();
        }
    }
    text
}

/// Returns the words that a key accepts, each with its description.
fn words(property: &Value) -> String {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let one = property["anyOf"].get(0).unwrap_or(property);
    let Some(reference) = one["$ref"].as_str() else { return String::new() };
    let definition = &schema["$defs"][reference.trim_start_matches("#/$defs/")];
    let Some(choices) = definition["oneOf"].as_array() else { return String::new() };
    let word = |choice: &Value| {
        format!(
            "<br>`{}`: {}",
            choice["const"].as_str().unwrap(),
            choice["description"].as_str().unwrap()
        )
    };
    choices.iter().map(word).collect()
}

/// Returns the heading of a mapping in the reference, which says where its keys occur in a file.
fn title(name: &str) -> &'static str {
    match name {
        "PolicyFile" => "The file",
        "Subject" => "`subjects.NAME`",
        "Paths" => "`paths`",
        "Forwarded" => "`forwarded`",
        "NetworkFile" => "`networks.NAME`",
        "Jwt" => "`jwt`",
        "Limit" => "`limits.NAME`",
        "ByValue" => "`limits.NAME.quota` and `.burst` by subject",
        "DayBySubject" => "`limits.NAME.billing_day` by subject",
        "Candidate" => "`limits.NAME.candidate`",
        "Metered" => "`limits.NAME.cost`",
        "ReserveFrom" => "`limits.NAME.cost.reserve`",
        "Reservation" => "`limits.NAME.reservation`",
        "Rule" => "`rules[]`",
        "Conditions" => "`rules[].match`",
        "ValueForm" => "`rules[].match.header.NAME`, `.query.NAME` and `.cookie.NAME`",
        "Queue" => "`rules[].queue`",
        "Count" => "`limits.NAME.count`",
        "DescriptorDomain" => "`descriptors[]`",
        "DescriptorNode" => "`descriptors[].tree[]`",
        "Answers" => "`answers`",
        "Refunds" => "`answers.refund`",
        "RefuseAnswer" => "`refuse` of `answers`, of a limit and of a rule",
        "RefusalBody" => "`refuse.body`",
        "Shed" => "`shed`",
        "Fleet" => "`shed.fleet`",
        "Worker" => "`shed.worker`",
        "Adaptive" => "`shed.worker.adaptive`",
        "Tenants" => "`tenants`",
        "Secret" => {
            "`secret`, `store.redis.password`, `store.redis.sentinel.password` and `serve.LISTENER.tokens`"
        }
        "Store" => "`store`",
        "Memory" => "`store.memory`",
        "Redis" => "`store.redis`",
        "Previous" => "`store.redis.previous`",
        "Shard" => "`store.redis.shards.NAME` and `store.redis.previous.shards.NAME`",
        "Tls" => "`store.redis.tls` and `store.redis.sentinel.tls`",
        "SentinelAccess" => "`store.redis.sentinel`",
        "Memcached" => "`store.memcached`",
        "Rollout" => "`store.rollout`",
        "Shadow" => "`store.shadow`",
        "Side" => "`store.rollout.from`, `.to`, `store.shadow.store` and `.shadow_store`",
        "Serve" => "`serve`",
        "Listener" => "`serve.LISTENER`",
        "Dashboard" => "`serve.dashboard`",
        "ListenerTls" => "`serve.LISTENER.tls`",
        "Traces" => "`traces`",
        other => panic!("say where the keys of {other} stand"),
    }
}
