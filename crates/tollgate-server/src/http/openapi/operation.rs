//! What can be asked, and how it is told.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::idempotency::MAX_KEY_BYTES;
use crate::http::problem::Kind;
use crate::http::wire::{
    BatchAnswer, BatchRequest, CheckRequest, MAX_LIMITS, RefundAnswer, RefundRequest,
    StandingAnswer, VerdictAnswer,
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
    /// The answer's document; plain text where there is none.
    pub(super) answer: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// What the answer tells.
    pub(super) told: &'static str,
    /// Beside those of every body, and of every path that asks for a token.
    pub(super) problems: &'static [Kind],
}

/// What is sent.
pub(super) struct Body {
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    examples: &'static [(&'static str, &'static str)],
}

impl Operation {
    /// Whether it asks for a token.
    pub(super) fn is_guarded(&self) -> bool {
        self.path.starts_with("/v1/")
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
    body: Some(Body { schema: of::<CheckRequest>, examples: CHECKS }),
    parameters: idempotency_key,
    answer: Some(of::<VerdictAnswer>),
    told: "The verdict: admitted or refused.",
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
        schema: of::<RefundRequest>,
        examples: &[("receipt", r#"{"receipt":"AQ"}"#)],
    }),
    parameters: Vec::new,
    answer: Some(of::<RefundAnswer>),
    told: "What it did.",
    problems: &[Kind::InvalidJson, Kind::InvalidReceipt, Kind::StoreUnavailable],
};

/// In the order of their paths.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        path: "/healthz",
        method: "get",
        id: "live",
        summary: "Whether this process serves",
        description: "For who would restart it otherwise. Asks for no token.",
        body: None,
        parameters: Vec::new,
        answer: None,
        told: "It serves.",
        problems: &[],
    },
    Operation {
        path: "/readyz",
        method: "get",
        id: "ready",
        summary: "Whether this node can take traffic",
        description: "For who would send it elsewhere otherwise. Asks for no token.",
        body: None,
        parameters: Vec::new,
        answer: None,
        told: "It can.",
        problems: &[Kind::NotReady],
    },
    CHECK,
    Operation {
        path: "/v1/check/batch",
        id: "checkBatch",
        summary: "Decide on several requests, each for itself",
        description: "One charge that cannot be understood refuses the whole batch, of which then \
            nothing is charged.",
        body: Some(Body { schema: of::<BatchRequest>, examples: BATCHES }),
        answer: Some(of::<BatchAnswer>),
        told: "A verdict for each.",
        ..CHECK
    },
    Operation {
        path: "/v1/peek",
        id: "peek",
        summary: "Decide on a request without charging it",
        description: "Whether it would be admitted now, and how its limits stand.",
        parameters: Vec::new,
        told: "The verdict that it would get.",
        problems: &[
            Kind::InvalidJson,
            Kind::UnknownLimit,
            Kind::InvalidSubject,
            Kind::StoreUnavailable,
        ],
        ..CHECK
    },
    REFUND,
    Operation {
        path: "/v1/release",
        id: "release",
        summary: "End a request in flight",
        description: "Ends the leases that a receipt proves, on limits of concurrency, and leaves \
            what was counted. Without it they end by themselves when their time is over.",
        ..REFUND
    },
    Operation {
        path: "/v1/standing",
        method: "get",
        id: "standing",
        summary: "How limits stand",
        description: "For subjects that are no secret: a target is written to many logs. For \
            credentials use `/v1/peek`.",
        body: None,
        parameters: limits_and_subject,
        answer: Some(of::<StandingAnswer>),
        told: "How they stand.",
        problems: &[
            Kind::InvalidQuery,
            Kind::UnknownLimit,
            Kind::InvalidSubject,
            Kind::StoreUnavailable,
        ],
    },
];

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn idempotency_key() -> Vec<Value> {
    vec![json!({
        "name": "idempotency-key",
        "in": "header",
        "description": "Another request needs another key. An answer is remembered for 60 s by the \
            process that gave it.",
        "schema": { "type": "string", "pattern": format!("^[!-~]{{1,{MAX_KEY_BYTES}}}$") },
    })]
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
