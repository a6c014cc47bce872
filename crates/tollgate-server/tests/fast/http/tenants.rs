//! Tenants: their plans and own quotas, over the API.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::http::world::{Answered, World};

const POLICY: &str = "
subjects: { org: { header: x-org, trusted: true } }
tenants: { by: org }
limits:
  calls: { quota: { by: plan, values: { free: 2, pro: 20 }, default: 1 }, window: 60s, per: org }
  exports: { quota: 5, window: 60s, per: org }
rules: [{ match: { has: org }, limits: calls }]
";

fn world() -> World {
    World::with_tenants(tollgate_policy::parse("test.yaml", POLICY).unwrap().policy)
}

/// Returns the limit and the used units of a tenant after a charge.
async fn charge(world: &World, limit: &str, tenant: &str) -> (u64, u64) {
    let charge = json!({ "limits": [{ "name": limit, "subject": { "org": tenant } }] });
    let answer = world.post("/v1/check", charge.to_string()).await.ok();
    let status = &answer["statuses"][0];
    (status["limit"].as_u64().unwrap(), status["used"].as_u64().unwrap())
}

async fn import(world: &World, path: &str, media_type: &str, body: impl Into<Body>) -> Answered {
    let request = Request::post(path).header("content-type", media_type);
    world.call(request.body(body.into()).unwrap()).await
}

#[tokio::test]
async fn a_row_is_in_force_at_once_and_is_shown_changed_and_removed() {
    let world = world();
    assert_eq!(charge(&world, "calls", "a/b c").await, (1, 1));
    let path = "/v1/tenants/a%2Fb%20c";
    assert_eq!(world.get(path).await.problem(404), "not-found");
    let row = json!({ "plan": "pro", "quotas": { "exports": { "quota": 9 } } });
    let set = world.put(path, row.to_string()).await.ok();
    let after =
        json!({ "tenant": "a/b c", "plan": "pro", "quotas": { "exports": { "quota": 9 } } });
    assert_eq!((&set["before"], &set["after"]), (&Value::Null, &after));
    assert_eq!(charge(&world, "calls", "a/b c").await, (20, 2));
    assert_eq!(charge(&world, "exports", "a/b c").await, (9, 1));
    assert_eq!(world.get(path).await.ok(), after);
    // A request, as a listener in front of a service sends it.
    let request =
        json!({ "request": { "method": "GET", "path": "/", "headers": { "x-org": "a/b c" } } });
    let answer = world.post("/v1/check", request.to_string()).await.ok();
    assert_eq!(
        (&answer["statuses"][0]["limit"], &answer["statuses"][0]["used"]),
        (&json!(20), &json!(3))
    );
    let removed = world.delete(path).await.ok();
    assert_eq!((&removed["before"], &removed["after"]), (&after, &Value::Null));
    assert_eq!(world.delete(path).await.ok()["before"], Value::Null);
    assert_eq!(charge(&world, "exports", "a/b c").await, (5, 2));
    let audit = world.get("/v1/audit").await.ok();
    let actions: Vec<_> =
        audit["entries"].as_array().unwrap().iter().map(|it| &it["action"]).collect();
    assert_eq!(actions, ["tenant removed", "tenant removed", "tenant set"]);
    assert_eq!(audit["entries"][2]["target"], json!({ "tenant": "a/b c" }));
}

#[tokio::test]
async fn a_wrong_row_is_refused_with_what_would_be_right() {
    let world = world();
    for (row, mistake) in [
        (json!({ "plan": "prro" }), "did you mean \\\"pro\\\"?"),
        (json!({ "quotas": { "cals": { "quota": 1 } } }), "did you mean \\\"calls\\\"?"),
        (json!({ "quotas": { "calls": { "quota": 0 } } }), "the limit \\\"calls\\\""),
        (json!({}), "a plan or a quota"),
    ] {
        let answer = world.put("/v1/tenants/acme", row.to_string()).await;
        assert_eq!(answer.problem(422), "invalid-tenant", "{row}");
        let text = String::from_utf8_lossy(&answer.bytes);
        assert!(text.contains(mistake), "{row}: {text}");
    }
    let unknown = world.put("/v1/tenants/acme", json!({ "plans": "pro" }).to_string()).await;
    assert_eq!(unknown.problem(400), "invalid-request");
    let long = world.put(&format!("/v1/tenants/{}", "x".repeat(129)), "{\"plan\":\"pro\"}").await;
    assert_eq!(long.problem(422), "invalid-tenant");
    assert_eq!(world.get("/v1/tenants").await.ok()["count"], 0);
}

/// A regression test: with `paths: { case: ignore }`, a row with upper-case letters had no effect.
#[tokio::test]
async fn a_row_for_a_name_that_no_request_has_is_refused() {
    let by_path = POLICY.replace("header: x-org", "path_segment: 1");
    let text = format!("paths: {{ case: ignore }}\n{by_path}");
    let world = World::with_tenants(tollgate_policy::parse("test.yaml", &text).unwrap().policy);
    let answer = world.put("/v1/tenants/Acme", "{\"plan\":\"pro\"}").await;
    assert_eq!(answer.problem(422), "invalid-tenant");
    let text = String::from_utf8_lossy(&answer.bytes);
    assert!(text.contains("no request has the tenant \\\"Acme\\\": use \\\"acme\\\""), "{text}");
    assert_eq!(
        world.put("/v1/tenants/acme", "{\"plan\":\"pro\"}").await.ok()["before"],
        Value::Null
    );
    assert_eq!(charge(&world, "calls", "ACME").await, (20, 1));
}

#[tokio::test]
async fn rows_are_imported_together_or_not_at_all_and_listed_by_pages() {
    let world = world();
    let line = |index: usize| format!("tenant-{index:04},pro,exports={}\n", index + 1);
    let rows: String = (0..2_500).map(line).collect();
    let csv = format!("tenant,plan,quotas\n{rows}");
    let imported = import(&world, "/v1/tenants", "text/csv", csv.clone()).await.ok();
    assert_eq!(imported, json!({ "rows": 2_500, "before": 0, "after": 2_500 }));
    assert_eq!(charge(&world, "exports", "tenant-1234").await, (1_235, 1));
    let mistake = import(&world, "/v1/tenants", "text/csv", csv + "last,gold,\n").await;
    assert_eq!(mistake.problem(422), "invalid-tenant");
    assert!(String::from_utf8_lossy(&mistake.bytes).contains("line 2502: the policy has no plan"));
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/v1/tenants?count=700&prefix=tenant-1{after}")).await.ok();
        assert_eq!((&page["count"], &page["location"]), (&json!(2_500), &json!("process")));
        let tenants = page["tenants"].as_array().unwrap();
        names.extend(tenants.iter().map(|one| one["tenant"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    names.sort();
    let expected: Vec<_> = (1_000..2_000).map(|index| format!("tenant-{index}")).collect();
    assert_eq!(names, expected);
    let lines = "{\"tenant\":\"acme\",\"plan\":\"free\"}\n";
    let path = "/v1/tenants?replace=true";
    let replaced = import(&world, path, "application/x-ndjson", lines).await.ok();
    assert_eq!(replaced, json!({ "rows": 1, "before": 2_500, "after": 1 }));
    assert_eq!(charge(&world, "exports", "tenant-1234").await, (5, 2));
}

#[tokio::test]
async fn an_import_has_a_known_format_and_a_bounded_size() {
    let world = world();
    let json = import(&world, "/v1/tenants", "application/json", "[]").await;
    assert_eq!(json.problem(415), "unsupported-media-type");
    let query = import(&world, "/v1/tenants?replace=yes", "text/csv", "").await;
    assert_eq!(query.problem(400), "invalid-query");
    let length = (tollgate_server::http::MAX_IMPORT_BYTES + 1).to_string();
    let request = Request::post("/v1/tenants").header("content-type", "text/csv");
    let request = request.header("content-length", length).body(Body::empty()).unwrap();
    assert_eq!(world.call(request).await.problem(413), "body-too-large");
    for query in ["count=0", "count=10001", "first=1", "prefix"] {
        let answer = world.get(&format!("/v1/tenants?{query}")).await;
        assert_eq!(answer.problem(400), "invalid-query", "{query}");
    }
}

/// The body of the import has a row each second, and does not end.
#[tokio::test(start_paused = true)]
async fn an_import_ends_after_two_minutes_and_keeps_others_out_until_then() {
    let world = world();
    let rows = stream::unfold((), async |()| {
        sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, Infallible>(Bytes::from("{\"tenant\":\"slow\",\"plan\":\"pro\"}\n")), ()))
    });
    let (path, media_type) = ("/v1/tenants", "application/x-ndjson");
    let begun = Instant::now();
    let slow = async {
        let answer = import(&world, path, media_type, Body::from_stream(rows)).await;
        (answer, begun.elapsed())
    };
    let row = "{\"tenant\":\"fast\",\"plan\":\"pro\"}\n";
    let other = async {
        sleep(Duration::from_secs(119)).await;
        import(&world, path, media_type, row).await
    };
    let ((slow, took), other) = tokio::join!(slow, other);
    assert_eq!((slow.problem(408), took), ("slow-body".into(), Duration::from_secs(120)));
    assert_eq!(other.problem(503), "busy");
    import(&world, path, media_type, row).await.ok();
    let listed = world.get(path).await.ok();
    assert_eq!((&listed["count"], &listed["tenants"][0]["tenant"]), (&json!(1), &json!("fast")));
}

#[tokio::test]
async fn a_policy_without_tenants_and_a_client_without_a_token_have_none() {
    let text = POLICY.replace("tenants: { by: org }\n", "").replace("by: plan", "by: org");
    let none = World::with_tenants(tollgate_policy::parse("test.yaml", &text).unwrap().policy);
    for answer in [
        none.get("/v1/tenants").await,
        none.put("/v1/tenants/acme", "{\"plan\":\"pro\"}").await,
        import(&none, "/v1/tenants", "text/csv", "").await,
    ] {
        assert_eq!(answer.problem(404), "not-found");
        assert!(String::from_utf8_lossy(&answer.bytes).contains("tenants: { by: SUBJECT }"));
    }
    let public = World::new();
    assert_eq!(public.get("/v1/tenants").await.problem(403), "forbidden");
    assert_eq!(public.delete("/v1/tenants/acme").await.problem(403), "forbidden");
}
