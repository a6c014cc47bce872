//! The settings of responses: headers, refunds and refusals.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::rule::OnFailure;
use crate::refusal::RefusalSettings;

/// A set of response header fields that report the status of a limit to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderProfile {
    /// `x-ratelimit-limit`, `-remaining`, `-used`, `-reset` (epoch seconds) and `-resource`.
    GitHub,
    /// `ratelimit-policy` and `ratelimit`: structured fields of the current IETF draft.
    Ietf,
    /// `x-ratelimit-limit`, `-remaining` and `-reset` (seconds from now), as in draft 03 of the
    /// IETF document. The first field also lists every visible limit with its quota and its window.
    Draft03,
    /// `ratelimit-limit`, `-remaining` and `-reset` (seconds from now), as in drafts 04 to 06.
    ThreeFields,
}

/// The settings of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSettings {
    /// The header profiles to send. A response to a limited request has the fields of all these
    /// profiles.
    pub headers: Vec<HeaderProfile>,
    /// The status codes of the service after which the charge is refunded.
    pub refund_statuses: Vec<u16>,
    /// Whether a request that the upstream did not answer is refunded.
    pub refund_upstream_failure: RefundPolicy,
    /// The status code of a refusal. The default is 429. Some services, such as GitHub, use 403.
    pub refuse_status: u16,
    /// The response to a refused request, unless the limit that refused or a matching rule has its
    /// own response.
    pub refusal: Option<Arc<RefusalSettings>>,
    /// The path at which a client reads the status of all its limits. Requests to this path are
    /// never charged. By default this is `None`, and no such path exists.
    pub status_path: Option<Box<str>>,
    /// The fallback for charges that do not come from a rule, while the store does not answer.
    pub on_failure: OnFailure,
}

/// Whether a charge is refunded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefundPolicy {
    /// The charge is not refunded, and its units stay used.
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
