//! Errors as problem details (RFC 9457).

use std::borrow::Cow;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use tollgate::model::StoreError;

use super::json::{Fault, FaultKind};

/// The reason why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    kind: Kind,
    detail: Cow<'static, str>,
    pointer: Option<String>,
}

/// An error, as problem details (RFC 9457).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct ProblemDocument<'a> {
    /// The kind of problem: `urn:problem-type:tollgate:…`
    r#type: String,
    /// A short description of the kind.
    title: &'a str,
    /// The status of the response.
    status: u16,
    /// The error in this request, and how to correct it.
    detail: &'a str,
    /// The location of the error: a JSON pointer (RFC 6901) into the request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pointer: Option<&'a str>,
}

macro_rules! kinds {
    ($($kind:ident $status:ident $slug:literal $title:literal,)*) => {
        /// The kinds of problems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind {
            $(#[doc = $title] $kind,)*
        }

        impl Kind {
            pub(super) const fn details(self) -> (StatusCode, &'static str, &'static str) {
                match self {
                    $(Self::$kind => (StatusCode::$status, $slug, $title),)*
                }
            }
        }
    };
}

kinds! {
    InvalidJson BAD_REQUEST "invalid-json" "The body is not valid JSON",
    InvalidRequest BAD_REQUEST "invalid-request" "The request is invalid",
    InvalidQuery BAD_REQUEST "invalid-query" "The query is invalid",
    InvalidReceipt BAD_REQUEST "invalid-receipt" "The receipt is invalid",
    InvalidIdempotencyKey BAD_REQUEST "invalid-idempotency-key" "The idempotency key is invalid",
    Unauthorized UNAUTHORIZED "unauthorized" "A valid token is required",
    Forbidden FORBIDDEN "forbidden" "The token does not permit this",
    CrossSite FORBIDDEN "cross-site" "The request comes from another site",
    UntrustedProxy FORBIDDEN "untrusted-proxy" "The proxy is not trusted",
    NotFound NOT_FOUND "not-found" "Not found",
    MethodNotAllowed METHOD_NOT_ALLOWED "method-not-allowed" "The method is not allowed",
    PolicyRefused CONFLICT "policy-rejected" "The policy was not reloaded",
    Misdirected MISDIRECTED_REQUEST "misdirected" "The host is not allowed",
    OverrideRefused CONFLICT "override-rejected" "The overrides were not changed",
    TenantsRefused CONFLICT "tenants-rejected" "The tenants were not changed",
    ResponseNotKept CONFLICT "response-not-kept" "The response was not kept",
    SlowBody REQUEST_TIMEOUT "slow-body" "The body took too long",
    BodyTooLarge PAYLOAD_TOO_LARGE "body-too-large" "The body is too large",
    UnsupportedMediaType UNSUPPORTED_MEDIA_TYPE "unsupported-media-type" "The body must be JSON",
    UnknownLimit UNPROCESSABLE_ENTITY "unknown-limit" "The policy has no such limit",
    InvalidSubject UNPROCESSABLE_ENTITY "invalid-subject" "The subject does not fit the limit",
    NotSimulated UNPROCESSABLE_ENTITY "not-simulated" "The log or the policy cannot be used",
    InvalidOverride UNPROCESSABLE_ENTITY "invalid-override" "The override is invalid",
    InvalidTenant UNPROCESSABLE_ENTITY "invalid-tenant" "The tenant is invalid",
    IdempotencyKeyReused UNPROCESSABLE_ENTITY "idempotency-key-reused"
        "The idempotency key belongs to another request",
    Internal INTERNAL_SERVER_ERROR "internal" "The request failed",
    StoreUnavailable SERVICE_UNAVAILABLE "store-unavailable" "The store is unavailable",
    Busy SERVICE_UNAVAILABLE "busy" "Another such request is running",
    NotReady SERVICE_UNAVAILABLE "not-ready" "The node is not ready",
    TooManyIdempotencyKeys SERVICE_UNAVAILABLE "too-many-idempotency-keys"
        "Too many idempotency keys",
}

impl Problem {
    pub(super) fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into(), pointer: None }
    }

    /// Sets the location of the error in the request's body.
    pub(super) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Prefixes the location of the error with `pointer`.
    pub(super) fn within(mut self, pointer: &str) -> Self {
        self.pointer = Some(format!("{pointer}{}", self.pointer.unwrap_or_default()));
        self
    }

    /// Returns the number of bytes that the problem uses in addition to the fixed texts.
    pub(super) fn size(&self) -> usize {
        self.detail.len() + self.pointer.as_ref().map_or(0, String::len)
    }

    pub(super) const fn status(&self) -> StatusCode {
        self.kind.details().0
    }

    pub(super) fn body(&self) -> Vec<u8> {
        let (status, slug, title) = self.kind.details();
        let document = ProblemDocument {
            r#type: format!("urn:problem-type:tollgate:{slug}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            pointer: self.pointer.as_deref(),
        };
        // Strings and numbers always convert to JSON.
        serde_json::to_vec(&document).unwrap_or_default()
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault.kind() {
            FaultKind::Syntax => Self::new(Kind::InvalidJson, fault.to_string()),
            FaultKind::Meaning => {
                Self::new(Kind::InvalidRequest, fault.to_string()).at(fault.pointer())
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(Kind::StoreUnavailable, error.to_string())
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Kind::Internal, error.to_string())
    }
}
