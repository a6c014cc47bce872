//! The audit of changes by administrators.

use axum::http::Request;
use serde_json::{Value, json};
use tollgate::model::Percent;
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate_server::http::MAX_AUDITED;
use tollgate_server::{Access, HttpOptions, Tokens};

use crate::http::world::World;

const TOKEN: &str = "an administrator's token";

fn world() -> World {
    let options = HttpOptions {
        admin: Some(Access::Tokens(Tokens::parse(TOKEN).unwrap())),
        rollout: Some(RolloutPercentage::new(Percent::NONE)),
        ..HttpOptions::default()
    };
    World::over(Memory::default(), options)
}

async fn send(world: &World, method: &str, path: &str, body: &Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .header("x-request-id", "r-1");
    world.call(request.body(body.to_string().into()).unwrap()).await.ok()
}

#[tokio::test]
async fn every_change_is_reported_with_who_made_it_and_what_it_was_before() {
    let world = world();
    let mut over = json!({ "group": { "token": "abc" }, "blocked": true, "expires_in": "1h",
        "reason": "first" });
    send(&world, "PUT", "/v1/overrides", &over).await;
    over["reason"] = json!("second");
    send(&world, "PUT", "/v1/overrides", &over).await;
    send(&world, "DELETE", "/v1/overrides?group[token]=abc", &json!(null)).await;
    // The override has been removed already: nothing is changed.
    send(&world, "DELETE", "/v1/overrides?group[token]=abc", &json!(null)).await;
    send(&world, "DELETE", "/v1/standing?limit=core&subject[token]=abc", &json!(null)).await;
    send(&world, "PUT", "/v1/rollout", &json!({ "percent": 30 })).await;
    let audit = send(&world, "GET", "/v1/audit", &json!(null)).await;
    let entries = audit["entries"].as_array().unwrap();
    let what: Vec<_> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        what,
        ["rollout changed", "subject reset", "override removed", "override set", "override set",]
    );
    assert_eq!((&entries[0]["before"], &entries[0]["after"]), (&json!(0), &json!(30)));
    assert_eq!(entries[1]["target"]["limit"], "core");
    assert_eq!(
        (&entries[2]["before"]["reason"], &entries[2]["after"]),
        (&json!("second"), &json!(null))
    );
    assert_eq!(
        (&entries[3]["before"]["reason"], &entries[3]["after"]["reason"]),
        (&json!("first"), &json!("second"))
    );
    for entry in entries {
        let who = entry["actor"].as_str().unwrap();
        assert!(who.starts_with("token ") && who.len() == 14, "{who}");
        assert_eq!(
            (&entry["request_id"], &entry["at_ms"]),
            (&json!("r-1"), &json!(1_700_000_000_000_u64))
        );
    }
    let text = audit.to_string();
    assert!(!text.contains(TOKEN) && !text.contains("abc"), "{text}");
}

#[tokio::test]
async fn so_many_are_remembered_and_no_more() {
    let world = world();
    for round in 0..=MAX_AUDITED {
        send(&world, "PUT", "/v1/rollout", &json!({ "percent": round % 101 })).await;
    }
    let audit = send(&world, "GET", "/v1/audit", &json!(null)).await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), MAX_AUDITED);
    assert_eq!(entries[0]["after"], MAX_AUDITED % 101);
}
