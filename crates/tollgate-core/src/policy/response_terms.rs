//! The terms by which the status of the response decides whether a charge remains.

use alloc::sync::Arc;

use crate::status_set::StatusSet;

/// The terms of a charge: the statuses of the response for which the charge remains, and those for
/// which it is refunded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTerms {
    /// The statuses of the responses that the limit counts. `None` means that every response
    /// counts.
    pub counted: Option<Arc<StatusSet>>,
    /// The statuses for which the rule refunds the charge. `None` means the statuses in
    /// [`ResponseSettings::refund_statuses`](super::ResponseSettings::refund_statuses).
    pub refund: Option<Arc<StatusSet>>,
}
