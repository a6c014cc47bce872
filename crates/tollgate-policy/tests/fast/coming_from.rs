//! The `coming-from-*` pages of the guide. The tests load the policy of each page, and check the
//! decisions that the page describes. The reference model makes these decisions.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tollgate_conformance::model::Model;
use tollgate_core::evaluation::{Evaluation, LimitStatus};
use tollgate_core::{
    Charge, ChargeId, Headers, KeyedHash, Millis, Operation, Policy, RequestAttributes, Timestamp,
};

/// The pages, each with the number of its sessions.
const PAGES: [(&str, usize); 11] = [
    ("coming-from-bucket4j.md", 4),
    ("coming-from-cloud-gateways.md", 3),
    ("coming-from-express-rate-limit.md", 4),
    ("coming-from-gubernator.md", 4),
    ("coming-from-haproxy-stick-tables.md", 3),
    ("coming-from-kong.md", 4),
    ("coming-from-limitador.md", 4),
    ("coming-from-nginx.md", 6),
    ("coming-from-redis-cell.md", 6),
    ("coming-from-throttlecrab.md", 6),
    ("coming-from-traefik.md", 4),
];

#[test]
fn decisions_are_those_that_the_pages_promise() {
    for (page, promises) in PAGES {
        let text = fs::read_to_string(docs().join(page)).unwrap();
        let loaded = tollgate_policy::parse(page, block(&text, "yaml"));
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        assert!(loaded.warnings.is_empty(), "{page}: {:?}", loaded.warnings);
        let mut requested = Asked { policy: loaded.policy, model: Model::new(), requests: 0 };
        let lines: Vec<&str> = block(&text, "decisions").lines().collect();
        assert_eq!(lines.len(), promises, "{page}");
        for line in lines {
            requested.keeps(line, page);
        }
    }
}

#[test]
fn every_recipe_is_a_policy_without_warnings() {
    let text = fs::read_to_string(docs().join("recipes.md")).unwrap();
    let recipes = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"{}"}]}"#.replace("{}", &"A".repeat(43));
    fs::write(folder.path().join("jwks.json"), key).unwrap();
    for recipe in recipes {
        fs::write(&path, recipe).unwrap();
        let loaded = tollgate_policy::load(&path);
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        assert!(loaded.warnings.is_empty(), "{recipe}\n{:?}", loaded.warnings);
        count += 1;
    }
    assert_eq!(count, 16);
}

#[test]
fn a_promise_that_is_not_kept_is_found() {
    let text = fs::read_to_string(docs().join("coming-from-nginx.md")).unwrap();
    let policy = || tollgate_policy::parse("page", block(&text, "yaml")).unwrap().policy;
    for wrong in ["0ms 22 admitted", "0ms 1 refused, again in 100ms"] {
        let mut requested = Asked { policy: policy(), model: Model::new(), requests: 0 };
        let kept = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            requested.keeps(wrong, "page");
        }));
        assert!(kept.is_err(), "{wrong}");
    }
}

#[test]
fn every_page_for_who_comes_from_elsewhere_is_tested() {
    let names = fs::read_dir(docs()).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    // The tests of the importer check the first of these pages, and doc tests of the library check
    // the second.
    let elsewhere = ["coming-from-envoy-ratelimit.md", "coming-from-governor.md"];
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("coming-from-") && !elsewhere.contains(&&**name))
        .collect();
    names.sort();
    assert_eq!(names, PAGES.map(|(page, _)| page));
}

/// A request for `/` from a client at 192.0.2.1 with the key `me`.
struct Asked {
    policy: Policy,
    model: Model,
    requests: u128,
}

impl Asked {
    /// Sends the request that `line` describes and checks the result, as in `2s 3 refused, again in
    /// 500ms`.
    fn keeps(&mut self, line: &str, page: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [at, count, promise, wait @ ..] = &words[..] else { panic!("{page}: {line}") };
        let now = Timestamp::from_millis(millis(at));
        let expected = match (*promise, wait) {
            ("admitted", []) => None,
            ("refused,", ["again", "in", wait]) => Some(millis(wait)),
            _ => panic!("{page}: {line}"),
        };
        for _ in 0..count.parse::<u32>().unwrap() {
            let evaluation = self.evaluate(now);
            assert_eq!(evaluation.is_admitted(), expected.is_none(), "{page}: {line}");
            assert_eq!(evaluation.retry_after().map(Millis::get), expected, "{page}: {line}");
        }
    }

    fn evaluate(&mut self, now: Timestamp) -> Evaluation {
        let peer = "192.0.2.1".parse().ok();
        let attributes = RequestAttributes {
            method: "GET",
            path: "/",
            query: None,
            host: None,
            peer,
            headers: &Key,
        };
        let plan = self.policy.plan(&attributes, &Same);
        self.requests += 1;
        let id = ChargeId(self.requests);
        let charges: Vec<Charge<'_>> = plan
            .enforced
            .iter()
            .map(|planned| Charge {
                limit: &planned.limit,
                subject: &planned.subject,
                operation: Operation::Charge { cost: planned.cost, id },
            })
            .collect();
        let readings = self.model.apply(now, &charges);
        let status = |(planned, reading)| {
            let planned: &tollgate_core::policy::PlannedCharge = planned;
            LimitStatus::new(Arc::clone(&planned.limit), planned.cost, reading)
        };
        let statuses = plan.enforced.iter().zip(readings.iter()).map(status).collect();
        Evaluation { now, statuses }
    }
}

struct Key;

impl Headers for Key {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == "x-api-key" && index == 0).then_some(b"me")
    }
}

struct Same;

impl KeyedHash for Same {
    fn hash(&self, _: &[u8]) -> [u8; 16] {
        [7; 16]
    }
}

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the first fenced block of a kind.
fn block<'a>(page: &'a str, kind: &str) -> &'a str {
    let (_, rest) =
        page.split_once(&format!("```{kind}\n")).unwrap_or_else(|| panic!("no {kind} in\n{page}"));
    rest.split_once("```").unwrap().0
}

fn millis(text: &str) -> u64 {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').unwrap_or_else(|| panic!("{text}")), 1_000),
    };
    number.parse::<u64>().unwrap() * unit
}
