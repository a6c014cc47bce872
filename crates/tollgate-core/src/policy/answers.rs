//! What clients are answered, beside the upstream's own words.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::rule::OnFailure;

/// A family of header fields that tell a client how it stands.
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

/// How to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSettings {
    /// Which header profiles to send, all of them on every limited answer.
    pub headers: Vec<HeaderProfile>,
    /// Statuses of the service's answer that give the charge back.
    pub refund_statuses: Vec<u16>,
    /// Whether a request is given back that the proxy could not get answered by its upstream.
    pub refund_upstream_failure: RefundPolicy,
    /// The status of a refusal: 429 by default, GitHub's 403 also is in use.
    pub refuse_status: u16,
    /// The path at which a client sees all its statuses, never charged; none by default.
    pub status_path: Option<Box<str>>,
    /// What becomes of charges that no rule speaks of, while the store has no answer.
    pub on_failure: OnFailure,
}

/// Whether a charge is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefundPolicy {
    /// The charge stands.
    #[default]
    Keep,
    /// The charge is given back.
    Refund,
}

impl Default for ResponseSettings {
    fn default() -> Self {
        Self {
            headers: alloc::vec![HeaderProfile::Ietf],
            refund_statuses: Vec::new(),
            refund_upstream_failure: RefundPolicy::Keep,
            refuse_status: 429,
            status_path: None,
            on_failure: OnFailure::default(),
        }
    }
}
