//! The subjects that are charged and refused most.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::observe::Top;
use tollgate::store::Memory;
use tollgate_server::{Access, HttpOptions};

use crate::http::world::{START, World, policy};

fn world(revealed: &[&str]) -> World {
    let top = Arc::new(Top::new(&policy(), START));
    let revealed = revealed.iter().map(|limit| (*limit).into()).collect();
    let admin = Some(Access::Open);
    let options =
        HttpOptions { admin, revealed, top: Some(Arc::clone(&top)), ..HttpOptions::default() };
    World::observed(Memory::default(), options, top)
}

async fn charge(world: &World, cost: u64, address: &str) {
    let charge = json!({ "limits": [
        { "name": "anonymous", "cost": cost, "subject": { "address": address } },
        { "name": "core", "cost": 1, "subject": { "token": "a secret" } },
    ]});
    world.post("/v1/check", charge.to_string()).await.ok();
}

#[tokio::test]
async fn the_heaviest_are_reported_by_their_hashes_unless_they_are_revealed() {
    for (revealed, shown) in [(&["anonymous", "core"][..], true), (&[], false)] {
        let world = world(revealed);
        charge(&world, 2, "192.0.2.1").await;
        charge(&world, 1, "192.0.2.2").await;
        charge(&world, 9, "192.0.2.2").await;
        let top = world.get("/v1/top").await.ok();
        assert_eq!((&top["by"], &top["since"]), (&json!("charged"), &json!(1_700_000_000)));
        let of = |limit: &str| -> Vec<Value> {
            let limits = top["limits"].as_array().unwrap();
            let printed = limits.iter().find(|printed| printed["limit"] == limit).unwrap();
            printed["subjects"].as_array().unwrap().clone()
        };
        let units: Vec<_> = of("anonymous").iter().map(|one| one["units"].clone()).collect();
        assert_eq!(units, [2, 1]);
        let address = of("anonymous")[0]["subject"]["address"].as_str().unwrap().to_owned();
        assert_eq!(address == "192.0.2.1", shown, "{address}");
        assert_eq!(address.starts_with('#') && address.len() == 33, !shown, "{address}");
        // A credential is never shown.
        assert!(of("core")[0]["subject"]["token"].as_str().unwrap().starts_with('#'));
        assert_eq!(of("core")[0]["error"], 0);
        let refused = world.get("/v1/top?by=refused&limit=anonymous&count=1").await.ok();
        assert_eq!(refused["limits"][0]["subjects"][0]["units"], 9);
        assert_eq!(refused["limits"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn who_has_nothing_of_what_is_counted_by_is_reported_as_null() {
    let world = world(&[]);
    let charge = json!({ "limits": [{ "name": "core", "subject": { "token": null } }] });
    world.post("/v1/check", charge.to_string()).await.ok();
    let top = world.get("/v1/top?limit=core").await.ok();
    assert_eq!(top["limits"][0]["subjects"][0]["subject"], json!({ "token": null }));
}

#[tokio::test]
async fn what_is_not_understood_is_refused() {
    let world = world(&[]);
    for query in ["by=most", "by", "count=0", "count=129", "count=-1", "count", "limits=core"] {
        let answered = world.get(&format!("/v1/top?{query}")).await;
        assert_eq!(answered.problem(400), "invalid-query", "{query}");
    }
    assert_eq!(world.get("/v1/top?limit=cor").await.problem(422), "unknown-limit");
    let elsewhere = World::over(
        Memory::default(),
        HttpOptions { admin: Some(Access::Open), ..HttpOptions::default() },
    );
    assert_eq!(elsewhere.get("/v1/top").await.problem(404), "not-found");
    assert_eq!(World::new().get("/v1/top").await.problem(403), "forbidden");
}
