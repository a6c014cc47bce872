//! The operations of the OpenAPI document.

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
    RefundResponse, ReleaseRequest, SubjectStatusResponse,
};

/// The description of one path with one method.
pub(super) struct Operation {
    pub(super) path: &'static str,
    pub(super) method: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) body: Option<Body>,
    pub(super) parameters: fn() -> Vec<Value>,
    /// The content of the response.
    pub(super) answer: Holds,
    /// The description of the response.
    pub(super) response: &'static str,
    /// The content of the response with status 429, if a refusal has that status.
    pub(super) refusal: Option<Holds>,
    /// The problems of this operation, in addition to the problems of every body and of every path
    /// that requires a token.
    pub(super) problems: &'static [Kind],
}

/// The content of a response.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// A JSON document.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Problem details, as for every error.
    Problem,
    /// A short text.
    Text,
    /// Header fields only.
    Nothing,
}

/// The body of a request.
pub(super) struct Body {
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) examples: &'static [(&'static str, &'static str)],
}

impl Operation {
    /// Returns the audience of the operation's route. Every operation has a route.
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
    summary: "Charge a request and decide on it",
    description: "Charges limits by their names, or the limits of the policy's rules that match a \
        request: all of them, or none. With an `idempotency-key`, a repeated request gets the same \
        response and is charged once.",
    body: Some(Body { schema: of::<CheckRequest<'_>>, examples: CHECKS }),
    parameters: of_a_charge,
    answer: Holds::Json(of::<DecisionResponse<'_>>),
    response: "The decision: admitted or refused.",
    refusal: None,
    problems: &[
        Kind::InvalidJson,
        Kind::InvalidIdempotencyKey,
        Kind::UnknownLimit,
        Kind::InvalidSubject,
        Kind::IdempotencyKeyReused,
        Kind::ResponseNotKept,
        Kind::TooManyIdempotencyKeys,
    ],
};

const REFUND: Operation = Operation {
    path: "/v1/refund",
    method: "post",
    id: "refund",
    summary: "Refund a charge",
    description: "Refunds the charge of a receipt to the windows that it was charged to. Using the \
        same receipt again changes nothing: the outcome is `unchanged`. With the status of the \
        response, only charges that the policy refunds after such a response are refunded.",
    body: Some(Body {
        schema: of::<RefundRequest<'_>>,
        examples: &[
            ("receipt", r#"{"receipt":"AQ"}"#),
            ("status", r#"{"receipt":"AQ","status":401}"#),
        ],
    }),
    parameters: Vec::new,
    answer: Holds::Json(of::<RefundResponse<'_>>),
    response: "The outcome, and the refund of each limit.",
    refusal: None,
    problems: &[Kind::InvalidJson, Kind::InvalidReceipt, Kind::StoreUnavailable],
};

const READY: Operation = Operation {
    path: "/readyz",
    method: "get",
    id: "ready",
    summary: "Report whether this node can accept traffic",
    description: "For load balancers that send traffic to another node otherwise. Requires no \
        token.",
    body: None,
    parameters: Vec::new,
    answer: Holds::Text,
    response: "The node can accept traffic.",
    refusal: None,
    problems: &[Kind::NotReady],
};

/// The operations for clients and for monitoring.
pub(super) const OPERATIONS: &[Operation] = &[
    AUTHORIZE,
    Operation { method: "post", id: "authorizePost", ..AUTHORIZE },
    DESCRIPTORS,
    Operation {
        path: "/healthz",
        method: "get",
        id: "live",
        summary: "Report whether this process serves requests",
        description: "For supervisors that restart the process if it does not respond. Requires no \
            token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Text,
        response: "The process serves requests.",
        refusal: None,
        problems: &[],
    },
    Operation {
        path: "/metrics",
        method: "get",
        id: "metrics",
        summary: "Metrics for Prometheus",
        description: "Returns all metrics in its text format. Requires an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Text,
        response: "The metrics.",
        refusal: None,
        problems: &[Kind::NotFound],
    },
    READY,
    Operation {
        path: "/healthcheck",
        id: "healthcheck",
        description: "The same as `/readyz`, under the path of envoyproxy/ratelimit's probe. Requires \
            no token.",
        ..READY
    },
    CHECK,
    Operation {
        path: "/v1/check/batch",
        id: "checkBatch",
        summary: "Charge several requests, each on its own",
        description: "If one charge is invalid, the whole batch is refused and nothing is charged.",
        body: Some(Body { schema: of::<BatchRequest<'_>>, examples: BATCHES }),
        answer: Holds::Json(of::<BatchResponse<'_>>),
        response: "A decision for each charge.",
        ..CHECK
    },
    Operation {
        path: "/v1/peek",
        id: "peek",
        summary: "Decide on a request without charging it",
        description: "Returns whether the request would be admitted now, and the status of its \
            limits.",
        parameters: || vec![preference()],
        response: "The decision that a check would return.",
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
        summary: "Release a permit or a reservation",
        description: "Releases the permits of a receipt on `concurrency` limits, and leaves other \
            charges. Permits that are not released expire. A reservation is released completely: \
            it costs nothing.",
        body: Some(Body {
            schema: of::<ReleaseRequest<'_>>,
            examples: &[("receipt", r#"{"receipt":"AQ"}"#)],
        }),
        ..REFUND
    },
    STANDING,
    Operation {
        method: "delete",
        id: "resetSubject",
        summary: "Reset the usage of a subject",
        description: "The next charge on these limits starts from zero. Receipts of earlier \
            charges become invalid. Requires an administrator's token. The log contains the \
            subject.",
        parameters: limits_and_subject,
        response: "The status after the reset.",
        ..STANDING
    },
];

const STANDING: Operation = Operation {
    path: "/v1/standing",
    method: "get",
    id: "subjectStatus",
    summary: "Return the status of limits",
    description: "Without `limit`: every limit that counts by nothing but the given subject. \
        Use it for subjects that are not secret, because request targets are written to \
        many logs. For credentials, use `/v1/peek`.",
    body: None,
    parameters: limits_or_all_and_subject,
    answer: Holds::Json(of::<SubjectStatusResponse<'_>>),
    response: "The status of the limits.",
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
    summary: "Charge a request of a proxy and decide on it",
    description: "For sub-requests: nginx' `auth_request`, Traefik's forwardAuth, Caddy's \
        `forward_auth`, HAProxy. Reads method, URI, client and host of the request from the header \
        fields that the proxy sets. Instead of the pair `x-forwarded-method` and `-uri`, it may \
        send `x-original-method` and `-uri`. A listener on loopback may require no token.",
    body: None,
    parameters: held_request,
    answer: Holds::Nothing,
    response: "The request is admitted. The header fields are those of the policy's profiles, \
        `tollgate-receipt`, and `tollgate-decision: admitted`. Every refusal of a sub-request has \
        `tollgate-decision: refused`. A 4xx without this field is the response to an invalid \
        sub-request: refuse the request.",
    refusal: Some(Holds::Problem),
    problems: &[Kind::InvalidRequest, Kind::StoreUnavailable],
};

const DESCRIPTORS: Operation = Operation {
    path: "/json",
    method: "post",
    id: "shouldRateLimit",
    summary: "Call Envoy's rate limit service in JSON",
    description: "Charges the descriptors of a `RateLimitRequest` of `envoy.service.ratelimit.v3`, \
        in the JSON form of protocol buffers.",
    body: Some(Body {
        schema: descriptors::request,
        examples: &[(
            "one",
            r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"42"}]}]}"#,
        )],
    }),
    parameters: Vec::new,
    answer: Holds::Json(descriptors::response),
    response: "The request is admitted.",
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
        "description": "Each request needs its own key. A response is kept for 60 s by the process \
            that sent it.",
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
        field("x-forwarded-uri", "The request's path, with or without a query.", "/", uri),
        field(
            "x-forwarded-for",
            "The address of the client: the last address counts.",
            "192.0.2.1",
            address,
        ),
    ]
}
