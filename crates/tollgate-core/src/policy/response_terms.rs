//! The terms that decide, by the status of the response, whether a charge remains.

use alloc::sync::Arc;

use crate::status_set::StatusSet;

/// The statuses of the response for which a charge remains or is refunded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTerms {
    /// The statuses of the responses that the limit counts. `None` means that every response
    /// counts.
    pub counted: Option<Arc<StatusSet>>,
    /// The statuses for which the rule refunds the charge, instead of those of
    /// [`ResponseSettings::refund_statuses`](super::ResponseSettings::refund_statuses).
    pub refund: Option<Arc<StatusSet>>,
}
