//! Reservations: held, put off, settled.

use super::{Body, CHECK, Holds, Operation, REFUND, idempotency_key, of};
use crate::http::problem::Kind;
use crate::http::wire::{
    ExtendRequest, ExtendResponse, ReserveRequest, SettleRequest, SettleResponse,
};

pub(super) const RESERVE: Operation = Operation {
    path: "/v1/reserve",
    id: "reserve",
    summary: "Hold what a request may cost",
    description: "Takes what a check would charge, all of it or nothing, and holds it until the \
        receipt settles or releases it, or until it runs out: then it is released or charged, as \
        each limit's `hold` says. With an `idempotency-key` a repeated request gets the same \
        answer and is held once.",
    body: Some(Body {
        schema: of::<ReserveRequest<'_>>,
        examples: &[(
            "tokens",
            r#"{"limits":[{"name":"core","cost":5,"subject":{"token":"abc"}}],"ttl_ms":60000}"#,
        )],
    }),
    parameters: || vec![idempotency_key()],
    ..CHECK
};

pub(super) const EXTEND: Operation = Operation {
    path: "/v1/extend",
    id: "extend",
    summary: "Hold a reservation longer",
    description: "Puts its end off, as far as each limit lets it, and never nearer. The answer's \
        receipt takes the place of the one that was shown.",
    body: Some(Body {
        schema: of::<ExtendRequest<'_>>,
        examples: &[("minute", r#"{"receipt":"Ag","ttl_ms":60000}"#)],
    }),
    answer: Holds::Json(of::<ExtendResponse<'_>>),
    ..REFUND
};

pub(super) const SETTLE: Operation = Operation {
    path: "/v1/settle",
    id: "settle",
    summary: "Say what a reserved request really cost",
    description: "Gives back what was held beyond it, and takes what it is beyond that, as far \
        as the limit and its overdraft go. The same receipt again changes nothing and says so.",
    body: Some(Body {
        schema: of::<SettleRequest<'_>>,
        examples: &[
            ("all", r#"{"receipt":"Ag","cost":3}"#),
            ("by name", r#"{"receipt":"Ag","limits":[{"name":"core","cost":3}]}"#),
        ],
    }),
    answer: Holds::Json(of::<SettleResponse<'_>>),
    problems: &[
        Kind::InvalidJson,
        Kind::InvalidRequest,
        Kind::InvalidReceipt,
        Kind::UnknownLimit,
        Kind::StoreUnavailable,
    ],
    ..REFUND
};
