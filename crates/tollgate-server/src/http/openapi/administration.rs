//! The operations for administrators.

use serde_json::{Value, json};
use tollgate::observe::TOP_SUBJECTS;

use super::operation::{Body, Holds, Operation, any_object, of};
use crate::history::HistoryResponse;
use crate::http::audit::AuditResponse;
use crate::http::policy::PolicyResponse;
use crate::http::problem::Kind;
use crate::http::rollout::{RolloutRequest, RolloutResponse};
use crate::http::simulate::SimulateRequest;
use crate::http::subjects::SubjectsResponse;
use crate::http::top::{DEFAULT_COUNT, TopResponse};
use crate::http::wire::{OverrideRequest, OverrideResponse, OverridesResponse};

/// The endpoints that require an administrator's token.
pub(super) const ADMINISTRATION: &[Operation] = &[
    Operation {
        path: "/v1/status",
        method: "get",
        id: "status",
        summary: "Return the status of the node and its store",
        description: "Requires an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(any_object),
        response: "The policy's version, the store, its shards and their counters.",
        refusal: None,
        problems: &[Kind::NotFound],
    },
    Operation {
        path: "/v1/history",
        method: "get",
        id: "history",
        summary: "Return the decisions of the last hour",
        description: "Returns one sample for every ten seconds since the node started, at most \
            360 of them, with at most 200 limits each. Requires an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(of::<HistoryResponse>),
        response: "The samples, oldest first.",
        refusal: None,
        problems: &[Kind::NotFound],
    },
    Operation {
        path: "/v1/policy",
        method: "get",
        id: "policy",
        summary: "Return the current policy",
        description: "Returns its limits, their subjects, and the rules that charge them. Requires \
            an administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(of::<PolicyResponse<'_>>),
        response: "The policy.",
        refusal: None,
        problems: &[],
    },
    Operation {
        path: "/v1/simulate",
        method: "post",
        id: "simulate",
        summary: "Simulate a policy on the requests of an access log or of this node",
        description: "Evaluates the current policy, and optionally another one for comparison, \
            each with its own counters and by the log's timestamps. Without a log, it evaluates a \
            sample of this node's requests of the last hour: all requests of one of \
            `sample.one_of` clients. One log at a time, at most 8 MiB, and 64 MiB after \
            decompression. Requires an administrator's token.",
        body: Some(Body {
            schema: of::<SimulateRequest<'_>>,
            examples: &[(
                "one",
                r#"{"log":"MTkyLjAuMi4xIC0gLSBbMTAvT2N0LzIwMjY6MTM6NTU6MzYgKzAwMDBdICJHRVQgLyBIVFRQLzEuMSIgMjAwIDUK"}"#,
            )],
        }),
        parameters: Vec::new,
        answer: Holds::Json(any_object),
        response: "The report of `tollgate simulate --json`.",
        refusal: None,
        problems: &[Kind::InvalidJson, Kind::NotFound, Kind::NotSimulated, Kind::Busy],
    },
    Operation {
        path: "/v1/policy/reload",
        method: "post",
        id: "reloadPolicy",
        summary: "Reload the policy file",
        description: "If the file cannot be used, the current policy stays in force. Requires an \
            administrator's token.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(any_object),
        response: "The version of the current policy, and whether it has changed.",
        refusal: None,
        problems: &[Kind::NotFound, Kind::PolicyRefused],
    },
    Operation {
        path: "/v1/top",
        method: "get",
        id: "top",
        summary: "List the subjects that are charged or refused most",
        description: "Covers the decisions of this node in the last five to ten minutes. Each \
            limit has a bounded number of subjects, which always include the heaviest ones.",
        body: None,
        parameters: ranking,
        answer: Holds::Json(of::<TopResponse>),
        response: "The heaviest subjects of each limit.",
        refusal: None,
        problems: &[Kind::InvalidQuery, Kind::UnknownLimit, Kind::NotFound],
    },
    Operation {
        path: "/v1/subjects",
        method: "get",
        id: "subjects",
        summary: "List the subjects of a limit",
        description: "Lists the subjects of a limit that reveals them, with a first value that \
            starts with `prefix`. If the store is Redis and its key names contain the subjects, \
            each page scans a bounded number of keys; otherwise the list contains subjects of \
            recent decisions of this node. Requires an administrator's token.",
        body: None,
        parameters: listing,
        answer: Holds::Json(of::<SubjectsResponse<'_>>),
        response: "One page of subjects.",
        refusal: None,
        problems: &[Kind::InvalidQuery, Kind::UnknownLimit, Kind::NotFound, Kind::StoreUnavailable],
    },
    OVERRIDES,
    Operation {
        method: "put",
        id: "setOverride",
        summary: "Set an override",
        description: "Sets another quota in the current window, unlimited, or blocked, for one \
            subject or a group, until the override ends. It replaces an earlier override of the \
            same target. Every node applies it within a second.",
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
        response: "The previous and the new override.",
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
        description: "The policy applies again to this target. Removing an override that does not \
            exist succeeds.",
        parameters: target,
        answer: Holds::Json(of::<OverrideResponse>),
        response: "The previous override.",
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
        summary: "List the changes of administrators",
        description: "Returns the last 1,000 changes by administrators of this node, in the form \
            of its log.",
        body: None,
        parameters: Vec::new,
        answer: Holds::Json(of::<AuditResponse>),
        response: "The changes, latest first.",
        refusal: None,
        problems: &[],
    },
    Operation {
        path: "/v1/rollout",
        method: "put",
        id: "setRollout",
        summary: "Set the percentage of clients that the new store decides",
        description: "The percentage stays on this node until it is set again: here, or by another \
            percentage in the policy file. Requires an administrator's token. The change is logged.",
        body: Some(Body {
            schema: of::<RolloutRequest>,
            examples: &[("third", r#"{"percent":30}"#)],
        }),
        parameters: Vec::new,
        answer: Holds::Json(of::<RolloutResponse>),
        response: "The new and the previous percentage.",
        refusal: None,
        problems: &[Kind::InvalidJson, Kind::NotFound],
    },
];

const OVERRIDES: Operation = Operation {
    path: "/v1/overrides",
    method: "get",
    id: "overrides",
    summary: "List the active overrides",
    description: "Returns all active overrides, and where they are stored.",
    body: None,
    parameters: Vec::new,
    answer: Holds::Json(of::<OverridesResponse>),
    response: "The active overrides.",
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
            "description": "The name of the only limit that the override applies to.",
            "schema": { "type": "string" },
        }),
        values("subject", "The subject that the override applies to."),
        values("group", "The value or the network that the override applies to."),
        json!({
            "name": "everybody",
            "in": "query",
            "description": "True if the override applies to every subject.",
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
        parameter("prefix", "The prefix of the first value."),
        parameter("after", "The `next` of the previous page."),
    ]
}

fn ranking() -> Vec<Value> {
    let parameter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let by = json!({ "type": "string", "enum": ["charged", "refused"], "default": "charged" });
    let count = json!({
        "type": "integer", "minimum": 1, "maximum": TOP_SUBJECTS, "default": DEFAULT_COUNT,
    });
    vec![
        parameter("by", "The quantity by which subjects are ranked.", by),
        parameter("limit", "The name of the only limit to list.", json!({ "type": "string" })),
        parameter("count", "The number of subjects of each limit.", count),
    ]
}
