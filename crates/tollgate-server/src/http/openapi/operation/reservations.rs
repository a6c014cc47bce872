//! The operations for reservations: reserve, extend, settle.

use super::{Body, CHECK, Holds, Operation, REFUND, idempotency_key, of};
use crate::http::problem::Kind;
use crate::http::wire::{
    ExtendRequest, ExtendResponse, ReserveRequest, SettleRequest, SettleResponse,
};

pub(super) const RESERVE: Operation = Operation {
    path: "/v1/reserve",
    id: "reserve",
    summary: "Reserve the estimated cost of a request",
    description: "Reserves the units that a check would charge, all of them or none, until the \
        receipt is settled or released, or until the reservation expires: then it is released or \
        charged, as each limit's `reservation.on_expiry` says. With an `idempotency-key`, a repeated request gets \
        the same response and is reserved once.",
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
    summary: "Extend a reservation",
    description: "Sets a later end, as far as each limit allows, and never an earlier one. The \
        receipt in the response replaces the one in the request.",
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
    summary: "Settle a reservation with the actual cost",
    description: "Refunds reserved units above the actual cost, and charges units beyond the \
        reservation as far as the limit and its overdraft allow. Using the same receipt again \
        changes nothing: the outcome is `unchanged`.",
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
