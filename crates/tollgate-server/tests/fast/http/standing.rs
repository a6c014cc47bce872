//! The status of limits by name, from a query.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use parking_lot::Mutex;
use serde_json::json;
use tollgate::store::Memory;
use tollgate_server::{Access, HttpOptions};
use tracing_subscriber::fmt::MakeWriter;

use crate::http::world::World;

#[tokio::test]
async fn limits_take_of_a_subject_what_they_count_by() {
    let world = World::new();
    let charge = json!({ "limits": [
        { "name": "core", "cost": 2, "subject": { "token": "a b" } },
        { "name": "anonymous", "subject": { "address": "2001:db8::1" } },
    ]});
    world.post("/v1/check", charge.to_string()).await.ok();
    let query = "limit=core&limit=anonymous&subject[token]=a+b&subject%5Baddress%5D=2001:db8::2";
    let limit_status = world.get(&format!("/v1/standing?{query}")).await.ok();
    assert_eq!((&limit_status["source"], &limit_status["policy"]), (&json!("store"), &json!("v1")));
    let used: Vec<_> =
        limit_status["statuses"].as_array().unwrap().iter().map(|one| &one["used"]).collect();
    assert_eq!(used, [2, 1]);
    // The subject of all clients without a token, of which there was none yet.
    let none = world.get("/v1/standing?limit=core&subject[token]").await.ok();
    assert_eq!(none["statuses"][0]["used"], 0);
}

#[tokio::test]
async fn without_a_limit_all_limits_of_the_subject_are_reported() {
    let world = World::new();
    let charge = json!({ "limits": [{ "name": "core", "cost": 2, "subject": { "token": "a" } }] });
    world.post("/v1/check", charge.to_string()).await.ok();
    let all = world.get("/v1/standing?subject[token]=a").await.ok();
    let core = world.get("/v1/standing?limit=core&subject[token]=a").await.ok();
    let statuses = all["statuses"].as_array().unwrap();
    assert!(statuses.contains(&core["statuses"][0]), "{all}");
    assert!(statuses.iter().all(|status| status["name"] != "anonymous"), "{all}");
    let nothing = world.get("/v1/standing?subject[nothing]=a").await;
    assert_eq!(nothing.problem(422), "invalid-subject");
    let admin = Some(Access::Open);
    let world = World::over(Memory::default(), HttpOptions { admin, ..HttpOptions::default() });
    // A request must not reset more counters than it names.
    let forget = Request::delete("/v1/standing?subject[token]=a").body(Body::empty()).unwrap();
    assert_eq!(world.call(forget).await.problem(400), "invalid-query");
}

#[tokio::test]
async fn what_is_forgotten_starts_afresh_and_the_log_keeps_whose_it_was() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _logs = tracing::subscriber::set_default(subscriber);
    let revealed = ["core".into()].into();
    let admin = Some(Access::Open);
    let options = HttpOptions { admin, revealed, ..HttpOptions::default() };
    let world = World::over(Memory::default(), options);
    let charge = json!({ "limits": [
        { "name": "core", "cost": 3, "subject": { "token": "abc" } },
        { "name": "anonymous", "cost": 2, "subject": { "address": "192.0.2.1" } },
    ]})
    .to_string();
    assert_eq!(world.post("/v1/check", charge.clone()).await.ok()["admitted"], true);
    assert_eq!(world.post("/v1/check", charge.clone()).await.ok()["admitted"], false);
    let query = "limit=core&limit=anonymous&subject[token]=abc&subject[address]=192.0.2.1";
    let forget = Request::delete(format!("/v1/standing?{query}")).body(Body::empty()).unwrap();
    let forgotten = world.call(forget).await.ok();
    for limit_status in forgotten["statuses"].as_array().unwrap() {
        assert_eq!((&limit_status["used"], &limit_status["admits"]), (&json!(0), &json!(true)));
    }
    assert_eq!(world.post("/v1/check", charge).await.ok()["admitted"], true);
    let printed = String::from_utf8(log.0.lock().clone()).unwrap();
    // The log contains keyed hashes, unless the limit reveals its subjects.
    assert!(
        printed.contains("reset the usage") && printed.contains(r##"subject={"address":"#"##),
        "{printed}"
    );
    assert!(!printed.contains("192.0.2.1"), "{printed}");
    assert!(printed.contains("limit=\"core\"") && !printed.contains("abc"), "{printed}");
}

/// The captured log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Log {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn what_is_not_understood_is_refused() {
    let rows = [
        ("", 422, "invalid-subject"),
        ("?", 422, "invalid-subject"),
        ("?limit", 400, "invalid-query"),
        ("?Limit=core", 400, "invalid-query"),
        ("?limit=core&token=abc", 400, "invalid-query"),
        ("?limit=core&subject=abc", 400, "invalid-query"),
        ("?limit=core&subject[token=abc", 400, "invalid-query"),
        ("?limit=core&subject[token]=a&subject[token]=b", 400, "invalid-query"),
        ("?limit=core&subject[token]=%", 400, "invalid-query"),
        ("?limit=core&subject[token]=%f", 400, "invalid-query"),
        ("?limit=core&subject[token]=%gg", 400, "invalid-query"),
        ("?limit=core&subject[token]=%ff", 400, "invalid-query"),
        ("?limit=", 422, "unknown-limit"),
        ("?limit=cor", 422, "unknown-limit"),
        ("?limit=core", 422, "invalid-subject"),
        ("?limit=core&subject[token]=", 422, "invalid-subject"),
        ("?limit=core&subject[tokens]=abc", 422, "invalid-subject"),
        ("?limit=core&subject[token]=a&subject[address]=192.0.2.1", 422, "invalid-subject"),
        ("?limit=anonymous&subject[address]=192.0.2", 422, "invalid-subject"),
    ];
    let world = World::new();
    for (query, status, problem) in rows {
        let answered = world.get(&format!("/v1/standing{query}")).await;
        assert_eq!(answered.problem(status), problem, "{query}");
    }
    let many = "limit=everybody&".repeat(33);
    assert_eq!(world.get(&format!("/v1/standing?{many}")).await.problem(400), "invalid-query");
}
