//! The dynamic metadata for Envoy's other filters.

use prost_types::Value;
use prost_types::value::Kind;
use serde_json::{Map, json};
use tollgate_server::grpc::proto::RateLimitResponse;

use crate::grpc::world::{World, counting, descriptor, request};

const POLICY: &str = "
limits:
  two: { quota: 2, window: 1m, anchor: calendar }
descriptors:
  - domain: edge
    tree:
      - { key: gold, limit: two, metadata: { tier: gold, of: { a: 1, b: [true, null] } } }
      - { key: silver, limit: two, metadata: { tier: silver, of: { c: 2 } } }
      - { key: plain, limit: two }
      - key: backend_name
        descriptors: [{ key: model_name_override, limit: two, mode: quota }]
";

fn read(answer: &RateLimitResponse) -> serde_json::Value {
    let Some(metadata) = &answer.dynamic_metadata else { return serde_json::Value::Null };
    plain(&Value { kind: Some(Kind::StructValue(metadata.clone())) })
}

fn plain(value: &Value) -> serde_json::Value {
    match value.kind.as_ref().unwrap() {
        Kind::NullValue(_) => json!(null),
        Kind::NumberValue(number) => json!(number),
        Kind::StringValue(text) => json!(text),
        Kind::BoolValue(is) => json!(is),
        Kind::StructValue(fields) => {
            let fields = fields.fields.iter().map(|(name, value)| (name.clone(), plain(value)));
            serde_json::Value::Object(fields.collect::<Map<_, _>>())
        }
        Kind::ListValue(list) => list.values.iter().map(plain).collect(),
    }
}

#[tokio::test]
async fn nodes_hand_on_what_is_written_there_while_they_are_not_over() {
    let world = World::new(POLICY).await;
    assert_eq!(read(&world.decide(vec![descriptor("plain=1")]).await), json!(null));

    let mut requested = request(vec![counting("gold=1", 2), descriptor("silver=1")]);
    requested.hits_addend = 1;
    let both = json!({
        "domain": "edge",
        "descriptors": [
            { "entries": ["gold=1"], "hitsAddend": 2.0 },
            { "entries": ["silver=1"] },
        ],
        "hitsAddend": 1.0,
        "metadata": { "tier": "gold", "of": { "a": 1.0, "b": [true, null], "c": 2.0 } },
    });
    assert_eq!(read(&world.send(requested).await.unwrap()), both);

    let refused = world.decide(vec![descriptor("gold=1"), descriptor("silver=1")]).await;
    assert_eq!(read(&refused)["metadata"], json!({ "tier": "silver", "of": { "c": 2.0 } }));
}

#[tokio::test]
async fn backends_with_quota_left_are_named() {
    let world = World::new(POLICY).await;
    let (one, two) =
        ("backend_name=x,model_name_override=m", "backend_name=y,model_name_override=m");
    world.decide(vec![counting(one, 2)]).await;
    let answer = world.decide(vec![descriptor(one), descriptor(two)]).await;
    let left = json!([{ "backend_name": "y", "model_name_override": "m" }]);
    assert_eq!(read(&answer)["passedBackends"], left);
    let answer = world.decide(vec![descriptor(one), counting(two, 2)]).await;
    assert_eq!(read(&answer).get("passedBackends"), None);
}
