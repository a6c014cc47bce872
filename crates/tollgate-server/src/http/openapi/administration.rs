//! What those ask who run it.

use serde_json::{Value, json};
use tollgate::observe::TOP_SUBJECTS;

use super::operation::{Body, Holds, Operation, any_object, of};
use crate::http::audit::AuditResponse;
use crate::http::policy::PolicyResponse;
use crate::http::problem::Kind;
use crate::http::rollout::{RolloutRequest, RolloutResponse};
use crate::http::simulate::SimulateRequest;
use crate::http::subjects::SubjectsResponse;
use crate::http::top::{DEFAULT_COUNT, TopResponse};
use crate::http::wire::{OverrideRequest, OverrideResponse, OverridesResponse};

/// All of it asks for an administrator's token.
pub(super) const ADMINISTRATION: &[Operation] = &[
    Operation {
        path: "/v1/status",
        method: "get",
        id: "status",
        summary: "How the node and its store stand",
        description: "Asks for an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(any_object),
        told: "The policy's version, the store, its shards and what was counted of them.",
        refusal: None,
        problems: &[Kind::NotFound],
    },
    Operation {
        path: "/v1/policy",
        method: "get",
        id: "policy",
        summary: "The policy in force",
        description: "Its limits, what they count by, and the rules that use them. Asks for an \
            administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(of::<PolicyResponse<'_>>),
        told: "The policy.",
        refusal: None,
        problems: &[],
    },
    Operation {
        path: "/v1/simulate",
        method: "post",
        id: "simulate",
        summary: "What a policy would have done with the requests of an access log",
        description: "The policy in force, and beside it another one if it is given: each on \
            counters of its own, by the log's clock. One log at a time, of 8 MiB at most and 64 MiB \
            when it is decompressed. Asks for an administrator's token.",
        body: Some(Body {
            schema: of::<SimulateRequest<'_>>,
            examples: &[(
                "one",
                r#"{"log":"MTkyLjAuMi4xIC0gLSBbMTAvT2N0LzIwMjY6MTM6NTU6MzYgKzAwMDBdICJHRVQgLyBIVFRQLzEuMSIgMjAwIDUK"}"#,
            )],
        }),
        parameters: Vec::new,
        answer: Holds::Json(any_object),
        told: "The report of `tollgate simulate --json`.",
        refusal: None,
        problems: &[Kind::InvalidJson, Kind::NotFound, Kind::NotSimulated, Kind::Busy],
    },
    Operation {
        path: "/v1/policy/reload",
        method: "post",
        id: "reloadPolicy",
        summary: "Read the policy file anew",
        description: "All of it or nothing: where the file cannot be used the policy in force \
            stays so. Asks for an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(any_object),
        told: "The version that is in force, and whether that is another one than before.",
        refusal: None,
        problems: &[Kind::NotFound, Kind::PolicyRefused],
    },
    Operation {
        path: "/v1/top",
        method: "get",
        id: "top",
        summary: "Tell who is charged or refused most",
        description: "What this node decided in the last five to ten minutes. Of each limit it \
            holds a bounded number of subjects: every one that weighs much is among them.",
        body: None,
        parameters: ranking,
        answer: Holds::Json(of::<TopResponse>),
        told: "The heaviest subjects of each limit.",
        refusal: None,
        problems: &[Kind::InvalidQuery, Kind::UnknownLimit, Kind::NotFound],
    },
    Operation {
        path: "/v1/subjects",
        method: "get",
        id: "subjects",
        summary: "List the subjects of a limit",
        description: "Of a limit that reveals them, those whose first value begins with `prefix`. \
            Where the names of keys tell them, in Redis, a page is found by looking at a bounded \
            number of keys; otherwise those are told that this node decided on lately. Asks for an \
            administrator's token.",
        body: None,
        parameters: listing,
        answer: Holds::Json(of::<SubjectsResponse<'_>>),
        told: "Some of the subjects.",
        refusal: None,
        problems: &[Kind::InvalidQuery, Kind::UnknownLimit, Kind::NotFound, Kind::StoreUnavailable],
    },
    OVERRIDES,
    Operation {
        method: "put",
        id: "setOverride",
        summary: "Set an override",
        description: "Another quota in the window that runs, unlimited, or blocked, for one subject \
            or a group, until it ends; in the place of what was said of the same. Every node goes by \
            it within a second.",
        body: Some(Body {
            schema: of::<OverrideRequest<'_>>,
            examples: &[
                (
                    "quota",
                    r#"{"limit":"core","subject":{"token":"abc"},"quota":20000,
                    "expires_in":"7d","reason":"a launch"}"#,
                ),
                (
                    "blocked",
                    r#"{"group":{"address":"192.0.2.0/24"},"blocked":true,
                    "expires_in":"1h","reason":"scraping"}"#,
                ),
                (
                    "switch",
                    r#"{"limit":"core","everybody":true,"counted":true,
                    "expires_in":"1h","reason":"it refuses too many"}"#,
                ),
            ],
        }),
        answer: Holds::Json(of::<OverrideResponse>),
        told: "What it was, and what it is.",
        problems: &[
            Kind::InvalidJson,
            Kind::UnknownLimit,
            Kind::InvalidSubject,
            Kind::InvalidOverride,
            Kind::OverrideRefused,
            Kind::StoreUnavailable,
            Kind::NotFound,
        ],
        ..OVERRIDES
    },
    Operation {
        method: "delete",
        id: "removeOverride",
        summary: "Remove an override",
        description: "The policy is in force again for this target. One that is not there is removed \
            already.",
        parameters: target,
        answer: Holds::Json(of::<OverrideResponse>),
        told: "What it was.",
        problems: &[
            Kind::InvalidQuery,
            Kind::UnknownLimit,
            Kind::InvalidSubject,
            Kind::InvalidOverride,
            Kind::OverrideRefused,
            Kind::StoreUnavailable,
            Kind::NotFound,
        ],
        ..OVERRIDES
    },
    Operation {
        path: "/v1/audit",
        method: "get",
        id: "audit",
        summary: "Tell what administrators changed",
        description: "The last 1,000 changes by this node's administrators, as its log has them.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(of::<AuditResponse>),
        told: "The last one first.",
        refusal: None,
        problems: &[],
    },
    Operation {
        path: "/v1/rollout",
        method: "put",
        id: "setRollout",
        summary: "Set the percentage of clients that the new store decides",
        description: "It stays so on this node until it is turned again: here, or by another \
            percentage in the policy file. Asks for an administrator's token; the log keeps it.",
        body: Some(Body {
            schema: of::<RolloutRequest>,
            examples: &[("third", r#"{"percent":30}"#)],
        }),
        parameters: Vec::new,
        answer: Holds::Json(of::<RolloutResponse>),
        told: "What it was turned to, and from.",
        refusal: None,
        problems: &[Kind::InvalidJson, Kind::NotFound],
    },
];

const OVERRIDES: Operation = Operation {
    path: "/v1/overrides",
    method: "get",
    id: "overrides",
    summary: "Tell the overrides in force",
    description: "All of them, and where they are kept.",
    body: None,
    parameters: Vec::new,
    answer: Holds::Json(of::<OverridesResponse>),
    told: "The overrides in force.",
    refusal: None,
    problems: &[Kind::NotFound],
};

fn target() -> Vec<Value> {
    let values = |name: &str, description: &str| {
        json!({
            "name": name,
            "in": "query",
            "description": description,
            "schema": { "type": "object", "additionalProperties": { "type": "string" } },
            "style": "deepObject",
            "explode": true,
        })
    };
    vec![
        json!({
            "name": "limit",
            "in": "query",
            "description": "The name of the only limit that it is about.",
            "schema": { "type": "string" },
        }),
        values("subject", "The subject that it is about."),
        values("group", "The value or the network that it is about."),
        json!({
            "name": "everybody",
            "in": "query",
            "description": "True where it is about every subject.",
            "schema": { "type": "boolean", "enum": [true] },
        }),
    ]
}

fn listing() -> Vec<Value> {
    let parameter = |name: &str, description: &str| json!({ "name": name, "in": "query", "description": description, "schema": { "type": "string" } });
    let mut limit = parameter("limit", "The name of the limit.");
    limit["required"] = true.into();
    vec![
        limit,
        parameter("prefix", "What the first value begins with."),
        parameter("after", "What the page before told as `next`."),
    ]
}

fn ranking() -> Vec<Value> {
    let parameter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let by = json!({ "type": "string", "enum": ["charged", "refused"], "default": "charged" });
    let count = json!({
        "type": "integer", "minimum": 1, "maximum": TOP_SUBJECTS, "default": DEFAULT_COUNT,
    });
    vec![
        parameter("by", "By what subjects are ranked.", by),
        parameter("limit", "The name of the only limit to tell of.", json!({ "type": "string" })),
        parameter("count", "How many subjects of each limit.", count),
    ]
}
