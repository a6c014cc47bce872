//! What can be asked, and how it is told.

mod reservations;

use axum::http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::descriptors;
use crate::http::idempotency::MAX_KEY_BYTES;
use crate::http::prefer::PREFER;
use crate::http::problem::Kind;
use crate::http::route::{Audience, Route};
use crate::http::wire::{
    BatchRequest, BatchResponse, CheckRequest, DecisionResponse, MAX_LIMITS, RefundRequest,
    RefundResponse, SubjectStatusResponse,
};

/// One path with one method.
pub(super) struct Operation {
    pub(super) path: &'static str,
    pub(super) method: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) body: Option<Body>,
    pub(super) parameters: fn() -> Vec<Value>,
    /// What the answer holds.
    pub(super) answer: Holds,
    /// What the answer tells.
    pub(super) told: &'static str,
    /// What the answer with status 429 holds, where a refusal is told by its status.
    pub(super) refusal: Option<Holds>,
    /// Beside those of every body, and of every path that asks for a token.
    pub(super) problems: &'static [Kind],
}

/// What an answer holds.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// A document in JSON.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// What is wrong, as of every error.
    Problem,
    /// A word.
    Text,
    /// Header fields alone.
    Nothing,
}

/// What is sent.
pub(super) struct Body {
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) examples: &'static [(&'static str, &'static str)],
}

impl Operation {
    /// Who may ask; nobody who is described has gone astray.
    pub(super) fn audience(&self) -> Audience {
        let method = Method::from_bytes(self.method.to_ascii_uppercase().as_bytes());
        let route = method.ok().and_then(|method| Route::find(&method, self.path).ok());
        route.map_or(Audience::Public, Route::audience)
    }
}

impl Body {
    pub(super) fn examples(&self) -> Value {
        let example = |(name, text): &(&str, &str)| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            ((*name).to_owned(), json!({ "value": value }))
        };
        Value::Object(self.examples.iter().map(example).collect::<Map<_, _>>())
    }
}

const CHECKS: &[(&str, &str)] = &[
    ("limits", r#"{"limits":[{"name":"core","cost":1,"subject":{"token":"abc"}}]}"#),
    (
        "request",
        r#"{"request":{"method":"GET","path":"/users/42","host":"api.example.com",
            "client_address":"192.0.2.1","headers":{"authorization":"Bearer abc"}}}"#,
    ),
];

const BATCHES: &[(&str, &str)] = &[(
    "two",
    r#"{"checks":[{"limits":[{"name":"core","subject":{"token":"abc"}}]},
        {"limits":[{"name":"core","cost":5,"subject":{"token":"def"}}]}]}"#,
)];

const CHECK: Operation = Operation {
    path: "/v1/check",
    method: "post",
    id: "check",
    summary: "Decide on a request, and charge it",
    description: "Charges limits by their names, or those that the policy's rules find for a \
        request: all of them, or none. With an `idempotency-key` a repeated request gets the same \
        answer and is charged once.",
    body: Some(Body { schema: of::<CheckRequest<'_>>, examples: CHECKS }),
    parameters: of_a_charge,
    answer: Holds::Json(of::<DecisionResponse<'_>>),
    told: "The decision: admitted or refused.",
    refusal: None,
    problems: &[
        Kind::InvalidJson,
        Kind::InvalidIdempotencyKey,
        Kind::UnknownLimit,
        Kind::InvalidSubject,
        Kind::IdempotencyKeyReused,
        Kind::TooManyIdempotencyKeys,
    ],
};

const REFUND: Operation = Operation {
    path: "/v1/refund",
    method: "post",
    id: "refund",
    summary: "Give a charge back",
    description: "Gives back what a receipt proves, into the windows that it was charged to. \
        The same receipt again changes nothing and says so.",
    body: Some(Body {
        schema: of::<RefundRequest<'_>>,
        examples: &[("receipt", r#"{"receipt":"AQ"}"#)],
    }),
    parameters: Vec::new,
    answer: Holds::Json(of::<RefundResponse<'_>>),
    told: "What it did.",
    refusal: None,
    problems: &[Kind::InvalidJson, Kind::InvalidReceipt, Kind::StoreUnavailable],
};

const READY: Operation = Operation {
    path: "/readyz",
    method: "get",
    id: "ready",
    summary: "Whether this node can take traffic",
    description: "For load balancers and readiness probes. Needs no token.",
    body: None,
    parameters: Vec::new,
    answer: Holds::Text,
    told: "It can.",
    refusal: None,
    problems: &[Kind::NotReady],
};

/// What those ask who are limited, and those who watch them.
pub(super) const OPERATIONS: &[Operation] = &[
    AUTHORIZE,
    Operation { method: "post", id: "authorizePost", ..AUTHORIZE },
    DESCRIPTORS,
    Operation {
        path: "/healthz",
        method: "get",
        id: "live",
        summary: "Whether this process serves",
        description: "For who would restart it otherwise. Asks for no token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Text,
        told: "It serves.",
        refusal: None,
        problems: &[],
    },
    Operation {
        path: "/metrics",
        method: "get",
        id: "metrics",
        summary: "Numbers for Prometheus",
        description: "In its text format. Asks for an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Text,
        told: "What was counted, and how things stand.",
        refusal: None,
        problems: &[Kind::NotFound],
    },
    READY,
    Operation {
        path: "/healthcheck",
        id: "healthcheck",
        description: "The same as `/readyz`, under the path of envoyproxy/ratelimit's probe. Needs \
            no token.",
        ..READY
    },
    CHECK,
    Operation {
        path: "/v1/check/batch",
        id: "checkBatch",
        summary: "Decide on several requests, each for itself",
        description: "One charge that cannot be understood refuses the whole batch, of which then \
            nothing is charged.",
        body: Some(Body { schema: of::<BatchRequest<'_>>, examples: BATCHES }),
        answer: Holds::Json(of::<BatchResponse<'_>>),
        told: "A decision for each.",
        ..CHECK
    },
    Operation {
        path: "/v1/peek",
        id: "peek",
        summary: "Decide on a request without charging it",
        description: "Whether it would be admitted now, and how its limits stand.",
        parameters: || vec![preference()],
        told: "The decision that a check would make.",
        problems: &[
            Kind::InvalidJson,
            Kind::UnknownLimit,
            Kind::InvalidSubject,
            Kind::StoreUnavailable,
        ],
        ..CHECK
    },
    REFUND,
    reservations::RESERVE,
    reservations::EXTEND,
    reservations::SETTLE,
    Operation {
        path: "/v1/release",
        id: "release",
        summary: "End a request in flight, or a reservation",
        description: "Ends the leases that a receipt proves, on limits of concurrency, and leaves \
            what was counted. Without it they end by themselves when their time is over. A \
            reservation is released whole: it costs nothing.",
        ..REFUND
    },
    STANDING,
    Operation {
        method: "delete",
        id: "resetSubject",
        summary: "Forget what a subject used",
        description: "The next charge on these limits starts afresh. Receipts of what was \
            forgotten are void. Asks for an administrator's token; the log keeps who was forgotten.",
        parameters: limits_and_subject,
        told: "How they stand now.",
        ..STANDING
    },
];

const STANDING: Operation = Operation {
    path: "/v1/standing",
    method: "get",
    id: "subjectStatus",
    summary: "How limits stand",
    description: "Without `limit`: every limit that counts by nothing but the given subject. For \
        subjects that are no secret: a target is written to many logs. For credentials use \
        `/v1/peek`.",
    body: None,
    parameters: limits_or_all_and_subject,
    answer: Holds::Json(of::<SubjectStatusResponse<'_>>),
    told: "How they stand.",
    refusal: None,
    problems: &[
        Kind::InvalidQuery,
        Kind::UnknownLimit,
        Kind::InvalidSubject,
        Kind::StoreUnavailable,
    ],
};

const AUTHORIZE: Operation = Operation {
    path: "/v1/authorize",
    method: "get",
    id: "authorize",
    summary: "Decide on the request that a proxy holds, and charge it",
    description: "For sub-requests: nginx' `auth_request`, Traefik's forwardAuth, Caddy's \
        `forward_auth`, HAProxy. Reads method, URI, client and host of the request from the \
        fields in which the proxy tells of them; instead of the pair `x-forwarded-method` and \
        `-uri` it may send `x-original-method` and `-uri`. On loopback a listener may ask for no token.",
    body: None,
    parameters: held_request,
    answer: Holds::Nothing,
    told: "It may pass. The fields are those of the policy's profiles, and `tollgate-receipt`.",
    refusal: Some(Holds::Problem),
    problems: &[Kind::InvalidRequest, Kind::StoreUnavailable],
};

const DESCRIPTORS: Operation = Operation {
    path: "/json",
    method: "post",
    id: "shouldRateLimit",
    summary: "Ask Envoy's rate limit service, in JSON",
    description: "A `RateLimitRequest` of `envoy.service.ratelimit.v3` in the JSON form of \
        protocol buffers, on the descriptors of the policy.",
    body: Some(Body {
        schema: descriptors::request,
        examples: &[(
            "one",
            r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"42"}]}]}"#,
        )],
    }),
    parameters: Vec::new,
    answer: Holds::Json(descriptors::response),
    told: "It may pass.",
    refusal: Some(Holds::Json(descriptors::response)),
    problems: &[Kind::StoreUnavailable],
};

pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn of_a_charge() -> Vec<Value> {
    vec![idempotency_key(), preference()]
}

pub(super) fn idempotency_key() -> Value {
    json!({
        "name": "idempotency-key",
        "in": "header",
        "description": "Another request needs another key. An answer is remembered for 60 s by the \
            process that gave it.",
        "schema": { "type": "string", "pattern": format!("^[!-~]{{1,{MAX_KEY_BYTES}}}$") },
    })
}

fn preference() -> Value {
    json!({
        "name": PREFER.as_str(),
        "in": "header",
        "description": "`return=minimal` leaves the receipt and the header fields out of decisions.",
        "schema": { "type": "string" },
        "example": "return=minimal",
    })
}

fn limits_or_all_and_subject() -> Vec<Value> {
    let mut parameters = limits_and_subject();
    parameters[0]["required"] = json!(false);
    parameters[0]["description"] =
        json!("The names of limits; all of the subject if none is given.");
    parameters
}

fn limits_and_subject() -> Vec<Value> {
    vec![
        json!({
            "name": "limit",
            "in": "query",
            "required": true,
            "description": "The names of limits.",
            "schema": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "maxItems": MAX_LIMITS,
            },
            "style": "form",
            "explode": true,
            "example": ["core"],
        }),
        json!({
            "name": "subject",
            "in": "query",
            "description": "A value for each subject that these limits count by.",
            "schema": { "type": "object", "additionalProperties": { "type": "string" } },
            "style": "deepObject",
            "explode": true,
            "example": { "token": "abc" },
        }),
    ]
}

fn held_request() -> Vec<Value> {
    let field = |name: &str, description: &str, example: &str, schema: Value| {
        json!({
            "name": name,
            "in": "header",
            "required": true,
            "description": description,
            "schema": schema,
            "example": example,
        })
    };
    let method = json!({ "type": "string", "pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$" });
    let uri = json!({ "type": "string", "pattern": r"^(/[!-~]*|\*)$" });
    let address =
        json!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] });
    vec![
        field("x-forwarded-method", "The request's method.", "GET", method),
        field("x-forwarded-uri", "The request's path, with or without its query.", "/", uri),
        field("x-forwarded-for", "Whose it is: the last address counts.", "192.0.2.1", address),
    ]
}
