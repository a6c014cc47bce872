//! The OpenAPI document, generated from the types of requests and responses.
//!
//! `schemars` generates the schemas. The rest, 1,140 lines, is written by hand. Of these lines, 900
//! are the descriptions, parameters and examples of the operations. `utoipa` and `aide` need the
//! same texts, in attributes or calls. Both libraries describe axum handlers, but this listener
//! answers its paths without axum's router. `schemathesis` compares the document with the
//! listener's responses.

mod administration;
mod descriptors;
mod operation;
mod tenants;

use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use administration::ADMINISTRATION;
use operation::{Holds, OPERATIONS, Operation};

use super::problem::{Kind, ProblemDocument};
use super::route::Audience;

/// The problems that every path with a request body can return.
const OF_BODIES: &[Kind] =
    &[Kind::InvalidRequest, Kind::SlowBody, Kind::BodyTooLarge, Kind::UnsupportedMediaType];

/// Returns the OpenAPI 3.1 document of the HTTP/JSON listener.
#[must_use]
pub fn openapi() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS.iter().chain(ADMINISTRATION).chain(tenants::TENANTS) {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = schemas.operation(operation);
    }
    tenants::describe_import(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Decides whether requests are admitted, and charges their costs. A \
                refusal is a normal response: its status is 200, and `admitted` is false.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas.definitions(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "One of the listener's tokens. A listener on loopback may \
                        require none.",
                },
                "administrator": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "One of the tokens of the admin listener.",
                },
                "proxy": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-tollgate-token",
                    "description": "One of the listener's tokens. `authorization` contains the \
                        credentials of the proxy's client.",
                },
            },
        },
    })
}

/// The schemas of requests and of responses. The two schemas of a type differ in a member with a
/// default: a request may leave the member out, and a response always contains it.
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
        if let Some(scheme) = scheme(operation.audience()) {
            described["security"] = json!([{ scheme: [] }]);
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
        let mut respond = |status: &str, description: &str, holds| {
            let mut response = json!({ "description": description });
            if let Some((media_type, schema)) = self.content(holds) {
                response["content"] = json!({ media_type: { "schema": schema } });
            }
            responses.insert(status.into(), response);
        };
        respond("200", operation.response, operation.answer);
        if let Some(refusal) = operation.refusal {
            respond(
                "429",
                "The request is over a limit. The policy may set another status.",
                refusal,
            );
            // Clients of GitHub's API parse problem details only as plain JSON.
            let content = responses.get_mut("429").and_then(|response| response.get_mut("content"));
            if let Some(Value::Object(content)) = content
                && let Some(problem) = content.get("application/problem+json").cloned()
            {
                content.insert("application/json".into(), problem);
            }
        }
        let of_bodies = if operation.body.is_some() { OF_BODIES } else { &[] };
        let of_audience = of_audience(operation.audience());
        for kind in of_audience.iter().chain(of_bodies).chain(operation.problems) {
            let (status, _, title) = kind.details();
            let problem = responses.entry(status.as_str()).or_insert_with(|| {
                json!({
                    "description": "",
                    "content": { "application/problem+json": {
                        "schema": { "$ref": "#/components/schemas/Problem" },
                    }},
                })
            });
            let description = problem["description"].as_str().unwrap_or_default();
            let description = if description.is_empty() {
                format!("{title}.")
            } else {
                format!("{description} {title}.")
            };
            problem["description"] = description.into();
            if *kind == Kind::Unauthorized {
                let schema = json!({ "type": "string" });
                problem["headers"] = json!({ "www-authenticate": { "schema": schema } });
            }
        }
        Value::Object(responses)
    }

    fn content(&mut self, holds: Holds) -> Option<(&'static str, Value)> {
        match holds {
            Holds::Json(schema) => Some(("application/json", schema(&mut self.written).into())),
            Holds::Problem => {
                let schema = json!({ "$ref": "#/components/schemas/Problem" });
                Some(("application/problem+json", schema))
            }
            Holds::Text => Some(("text/plain", json!({ "type": "string" }))),
            Holds::Nothing => None,
        }
    }
}

/// Returns the name of the security scheme for an audience, or `None` if the audience needs no
/// token.
const fn scheme(entry: Audience) -> Option<&'static str> {
    match entry {
        Audience::Public => None,
        Audience::Caller => Some("token"),
        Audience::Admin => Some("administrator"),
        Audience::Proxy => Some("proxy"),
    }
}

/// Returns the problems of requests that do not have the access that their route requires.
const fn of_audience(entry: Audience) -> &'static [Kind] {
    match entry {
        Audience::Public => &[],
        Audience::Caller => &[Kind::Unauthorized],
        Audience::Admin => &[Kind::Unauthorized, Kind::Forbidden],
        Audience::Proxy => &[Kind::UntrustedProxy],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route::ROUTES;

    #[test]
    fn every_route_is_described() {
        let document = openapi();
        for (path, methods) in ROUTES.iter().filter(|(path, _)| *path != "/openapi.json") {
            for (method, _) in *methods {
                let described = &document["paths"][*path][method.as_str().to_lowercase()];
                assert!(described["operationId"].is_string(), "{method} {path}");
            }
        }
    }
}
