//! The settings of responses: headers, refunds and refusals.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::rule::OnFailure;
use crate::refusal::RefusalSettings;

/// A family of header fields that report the status to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderProfile {
    /// `x-ratelimit-limit`, `-remaining`, `-used`, `-reset` (epoch seconds) and `-resource`.
    GitHub,
    /// `ratelimit-policy` and `ratelimit`: structured fields of the current IETF draft.
    Ietf,
    /// `x-ratelimit-limit` with its policies, `-remaining` and `-reset` (seconds from now), after
    /// draft 03 of the IETF document.
    Draft03,
    /// `ratelimit-limit`, `-remaining` and `-reset` (seconds from now), after drafts 04 to 06.
    ThreeFields,
}

/// The settings of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSettings {
    /// The header profiles to send; all of them are sent on every limited response.
    pub headers: Vec<HeaderProfile>,
    /// The status codes of the service that refund the charge.
    pub refund_statuses: Vec<u16>,
    /// Whether a request that the upstream did not answer is refunded.
    pub refund_upstream_failure: RefundPolicy,
    /// The status code of a refusal: 429 by default. GitHub's 403 is also in use.
    pub refuse_status: u16,
    /// The response to a refusal, unless the limit that refused or a matching rule has one of its own.
    pub refusal: Option<Arc<RefusalSettings>>,
    /// The path at which a client reads all its statuses, never charged; none by default.
    pub status_path: Option<Box<str>>,
    /// The fallback for charges without a rule while the store does not answer.
    pub on_failure: OnFailure,
}

/// Whether a charge is refunded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefundPolicy {
    /// The charge is kept.
    #[default]
    Keep,
    /// The charge is refunded.
    Refund,
}

impl Default for ResponseSettings {
    fn default() -> Self {
        Self {
            headers: alloc::vec![HeaderProfile::Ietf],
            refund_statuses: Vec::new(),
            refund_upstream_failure: RefundPolicy::Keep,
            refuse_status: 429,
            refusal: None,
            status_path: None,
            on_failure: OnFailure::default(),
        }
    }
}
