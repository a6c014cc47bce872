//! The OpenAPI document: the listener serves it, the repository contains it, and it matches the
//! routes.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::http::world::World;

fn committed() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json")
}

#[tokio::test]
async fn the_committed_document_is_the_one_that_is_served() {
    let served = World::new().get("/openapi.json").await.ok();
    let text = serde_json::to_string_pretty(&served).unwrap() + "\n";
    if env::var_os("UPDATE").is_some() {
        fs::write(committed(), &text).unwrap();
    }
    let command = "UPDATE=1 cargo test -p tollgate-server openapi";
    assert!(fs::read_to_string(committed()).unwrap_or_default() == text, "run: {command}");
}

#[tokio::test]
async fn what_is_described_is_there_and_nothing_hangs_in_the_air() {
    let world = World::new();
    let document = world.get("/openapi.json").await.ok();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let request = Request::builder().method(&*method.to_uppercase()).uri(path);
            let status = world.call(request.body(Body::empty()).unwrap()).await.status.as_u16();
            assert!(!matches!(status, 404 | 405), "{method} {path}: {status}");
        }
    }
    let defined = document["components"]["schemas"].as_object().unwrap();
    let defined: BTreeSet<&str> = defined.keys().map(String::as_str).collect();
    assert_eq!(references(&document), defined);
}

/// Returns the names of all schemas that are referenced.
fn references(value: &Value) -> BTreeSet<&str> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| match (&**name, value) {
                ("$ref", Value::String(to)) => {
                    BTreeSet::from([to.strip_prefix("#/components/schemas/").unwrap()])
                }
                _ => references(value),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => BTreeSet::new(),
    }
}
