//! What those ask who run it.

use serde_json::{Value, json};
use tollgate::observe::TOP_SUBJECTS;

use super::operation::{Body, Holds, Operation, any_object, of};
use crate::http::policy::PolicyAnswer;
use crate::http::problem::Kind;
use crate::http::rollout::{RolloutAnswer, RolloutRequest};
use crate::http::simulate::SimulateRequest;
use crate::http::top::{DEFAULT_COUNT, TopAnswer};

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
        answer: Holds::Json(of::<PolicyAnswer<'_>>),
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
        answer: Holds::Json(of::<TopAnswer>),
        told: "The heaviest subjects of each limit.",
        refusal: None,
        problems: &[Kind::InvalidQuery, Kind::UnknownLimit, Kind::NotFound],
    },
    Operation {
        path: "/v1/rollout",
        method: "put",
        id: "turnRollout",
        summary: "Turn how many clients the new one of two stores decides",
        description: "It stays so on this node until it is turned again: here, or by another \
            percentage in the policy file. Asks for an administrator's token; the log keeps it.",
        body: Some(Body {
            schema: of::<RolloutRequest>,
            examples: &[("third", r#"{"percent":30}"#)],
        }),
        parameters: Vec::new,
        answer: Holds::Json(of::<RolloutAnswer>),
        told: "What it was turned to, and from.",
        refusal: None,
        problems: &[Kind::InvalidJson, Kind::NotFound],
    },
];

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
