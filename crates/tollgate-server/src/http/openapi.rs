//! The OpenAPI document, made of the types that are read and written.

mod operation;

use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use operation::{OPERATIONS, Operation};

use super::problem::{Kind, ProblemDocument};

/// What every path that asks for a token may answer.
const OF_GUARDED: &[Kind] = &[Kind::Unauthorized];
/// What every path that reads a body may answer.
const OF_BODIES: &[Kind] =
    &[Kind::InvalidRequest, Kind::SlowBody, Kind::BodyTooLarge, Kind::UnsupportedMediaType];

/// The OpenAPI 3.1 document of the HTTP/JSON door.
#[must_use]
pub fn openapi() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = schemas.operation(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Decides whether requests may pass, and charges what they cost. A \
                refusal is an answer like any other: its status is 200, and `admitted` is false.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas.definitions(),
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "One of the door's tokens. A door on loopback may ask for none.",
            }},
        },
    })
}

/// The schemas of what is read, and of what is written: a member that has a default may be left out
/// by who writes to us, and is always in what we write.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings.contract = contract;
            settings.into_generator()
        };
        let mut written = settings(Contract::Serialize);
        written.subschema_for::<ProblemDocument<'_>>();
        Self { read: settings(Contract::Deserialize), written }
    }

    fn definitions(mut self) -> Value {
        let mut all = self.read.take_definitions(false);
        all.extend(self.written.take_definitions(false));
        Value::Object(all)
    }

    fn operation(&mut self, operation: &Operation) -> Value {
        let mut described = json!({
            "operationId": operation.id,
            "summary": operation.summary,
            "description": operation.description,
            "responses": self.responses(operation),
        });
        if operation.is_guarded() {
            described["security"] = json!([{ "token": [] }]);
        }
        if let Some(body) = &operation.body {
            described["requestBody"] = json!({
                "required": true,
                "content": { "application/json": {
                    "schema": (body.schema)(&mut self.read),
                    "examples": body.examples(),
                }},
            });
        }
        let parameters = (operation.parameters)();
        if !parameters.is_empty() {
            described["parameters"] = Value::Array(parameters);
        }
        described
    }

    fn responses(&mut self, operation: &Operation) -> Value {
        let mut responses: Map<String, Value> = Map::new();
        let (media_type, schema) = match operation.answer {
            Some(schema) => ("application/json", schema(&mut self.written).into()),
            None => ("text/plain", json!({ "type": "string" })),
        };
        let content = json!({ media_type: { "schema": schema } });
        responses
            .insert("200".into(), json!({ "description": operation.told, "content": content }));
        let of_guarded = if operation.is_guarded() { OF_GUARDED } else { &[] };
        let of_bodies = if operation.body.is_some() { OF_BODIES } else { &[] };
        for kind in of_guarded.iter().chain(of_bodies).chain(operation.problems) {
            let (status, _, title) = kind.told();
            let problem = responses.entry(status.as_str()).or_insert_with(|| {
                json!({
                    "description": "",
                    "content": { "application/problem+json": {
                        "schema": { "$ref": "#/components/schemas/Problem" },
                    }},
                })
            });
            let told = problem["description"].as_str().unwrap_or_default();
            let told =
                if told.is_empty() { format!("{title}.") } else { format!("{told} {title}.") };
            problem["description"] = told.into();
            if *kind == Kind::Unauthorized {
                let schema = json!({ "type": "string" });
                problem["headers"] = json!({ "www-authenticate": { "schema": schema } });
            }
        }
        Value::Object(responses)
    }
}
