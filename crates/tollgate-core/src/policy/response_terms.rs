//! The terms by which a charge depends on the response.

use alloc::sync::Arc;

use crate::status_set::StatusSet;

/// How a charge depends on the status of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTerms {
    /// The statuses that the limit counts; `None` counts every response.
    pub counted: Option<Arc<StatusSet>>,
    /// The statuses for which the rule refunds the charge, instead of those of
    /// [`ResponseSettings::refund_statuses`](super::ResponseSettings::refund_statuses).
    pub refund: Option<Arc<StatusSet>>,
}
