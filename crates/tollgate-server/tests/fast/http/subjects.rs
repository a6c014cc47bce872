//! The list of a limit's subjects.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tollgate::HashKey;
use tollgate::model::{Subject, Value};
use tollgate::observe::Top;
use tollgate::store::Memory;
use tollgate_server::http::{Subjects, SubjectsError, SubjectsPage, SubjectsRequest};
use tollgate_server::{Access, HttpOptions};

use crate::http::world::{START, World, policy};

fn world(revealed: &[&str], subjects: Option<Subjects>) -> World {
    let top = Arc::new(Top::new(&policy(), START));
    let revealed = revealed.iter().map(|limit| (*limit).into()).collect();
    let options = HttpOptions {
        admin: Some(Access::Open),
        revealed,
        top: Some(Arc::clone(&top)),
        subjects,
        ..HttpOptions::default()
    };
    World::observed(Memory::default(), options, top)
}

async fn charge(world: &World, cost: u64, address: &str) {
    let charge = json!({ "limits": [
        { "name": "anonymous", "cost": cost, "subject": { "address": address } },
    ]});
    world.post("/v1/check", charge.to_string()).await.ok();
}

#[tokio::test]
async fn where_the_store_keeps_no_names_those_of_late_are_listed() {
    let world = world(&["anonymous"], Some(Subjects::new(|_| async { Ok(None) })));
    for (cost, address) in [(1, "192.0.2.2"), (1, "192.0.2.1"), (1, "198.51.100.1")] {
        charge(&world, cost, address).await;
    }
    // A subject that was only refused is listed, too.
    charge(&world, 999, "192.0.2.3").await;
    let printed = world.get("/v1/subjects?limit=anonymous&prefix=192.0.").await.ok();
    let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    let subjects = addresses.map(|address| json!({ "address": address }));
    let expected =
        json!({ "limit": "anonymous", "source": "recent", "subjects": subjects, "next": null });
    assert_eq!(printed, expected);
    let all = world.get("/v1/subjects?limit=anonymous").await.ok();
    assert_eq!(all["subjects"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn what_the_store_knows_is_reported_page_by_page() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let printed = Arc::clone(&received);
    let list = move |requested: SubjectsRequest| {
        let SubjectsRequest { limit, dimension, prefix, after } = requested;
        printed.lock().unwrap().push(format!("{} {dimension} {prefix} {after:?}", limit.name()));
        async move {
            let key = HashKey::from_secret(b"a key");
            let address = Subject::new([("address", Value::Clear(b"192.0.2.1"))], &key);
            match after.as_deref() {
                None => Ok(Some(SubjectsPage { subjects: vec![address], next: Some("7".into()) })),
                Some("7") => Ok(Some(SubjectsPage::default())),
                Some("slow") => Err(SubjectsError::Store("it is slow".into())),
                Some(_) => Err(SubjectsError::After),
            }
        }
    };
    let world = world(&["anonymous"], Some(Subjects::new(list)));
    let first = world.get("/v1/subjects?limit=anonymous&prefix=192").await.ok();
    let subjects = json!([{ "address": "192.0.2.1" }]);
    let expected =
        json!({ "limit": "anonymous", "source": "store", "subjects": subjects, "next": "7" });
    assert_eq!(first, expected);
    let last = world.get("/v1/subjects?limit=anonymous&after=7").await.ok();
    assert_eq!((&last["subjects"], &last["next"]), (&json!([]), &json!(null)));
    let slow = world.get("/v1/subjects?limit=anonymous&after=slow").await;
    assert_eq!(slow.problem(503), "store-unavailable");
    let wrong = world.get("/v1/subjects?limit=anonymous&after=x").await;
    assert_eq!(wrong.problem(400), "invalid-query");
    let received = received.lock().unwrap();
    assert_eq!(received[..2], ["anonymous address 192 None", "anonymous address  Some(\"7\")"]);
}

#[tokio::test]
async fn nobody_is_listed_who_is_not_revealed_and_what_is_not_understood_is_refused() {
    let world = world(&["anonymous"], None);
    assert_eq!(world.get("/v1/subjects?limit=core").await.problem(404), "not-found");
    assert_eq!(world.get("/v1/subjects?limit=cor").await.problem(422), "unknown-limit");
    for query in [
        "",
        "limit",
        "limit=anonymous&limit=core",
        "limit=anonymous&by=charged",
        "limit=anonymous&after=7",
    ] {
        let answered = world.get(&format!("/v1/subjects?{query}")).await;
        assert_eq!(answered.problem(400), "invalid-query", "{query}");
    }
    assert_eq!(World::new().get("/v1/subjects?limit=core").await.problem(403), "forbidden");
}
