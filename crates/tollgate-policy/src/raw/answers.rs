//! `answers`: responses to clients, and refunds.

use super::choices::{OnFailureName, ProfileName};
use crate::decode::{Flag, OneOrMore, StatusRange, Text, Whole, keys};

keys! {
    /// What clients receive, and when a charge is refunded.
    struct Answers as "answers" {
        /// The header profiles to send; several can be combined. `[]` sends none. By default
        /// `ietf`.
        headers: OneOrMore<ProfileName>,
        /// When a charge is refunded. By default never.
        refund: Refunds,
        /// The response to a refused request.
        refuse: RefuseAnswer,
        /// The path at which `GET` returns the status of every limit of the client, in the format
        /// of GitHub's `/rate_limit`. Such a request is never charged. By default there is none.
        status_path: Text,
        /// The fallback for requests while the store does not answer, if the rule does not set one.
        /// By default `local`.
        on_failure: OnFailureName,
    }
}

keys! {
    /// When a charge is refunded.
    struct Refunds as "refunds" {
        /// Statuses of the service's response for which the charge is refunded, such as 304 or `5xx`.
        /// A rule can have its own in `refund`.
        status: OneOrMore<StatusRange>,
        /// Whether to refund the charge if the service did not respond. By default false.
        upstream_failure: Flag,
    }
}

keys! {
    /// The response to a refused request.
    struct RefuseAnswer as "a refusal" {
        /// The status of the response, 400 to 599. By default 429.
        status: Whole,
    }
}
