//! What clients are told, as written.

use super::choices::{OnFailureName, ProfileName};
use crate::decode::{Flag, OneOrMore, Text, Whole, keys};

keys! {
    /// What clients are told, and what is given back.
    struct Answers as "answers" {
        /// The header profiles to send, several at once if you like. By default `ietf`; `[]` sends none.
        headers: OneOrMore<ProfileName>,
        /// When a charge is given back. By default never.
        refund: Refunds,
        /// How a refusal looks.
        refuse: RefuseAnswer,
        /// The path at which `GET` returns the status of every limit of the client, in the format of GitHub's `/rate_limit`. Such a request is never charged. By default there is none.
        status_path: Text,
        /// What becomes of a request while the store has no answer, where its rule does not say. By default `local`.
        on_failure: OnFailureName,
    }
}

keys! {
    /// When a charge is given back.
    struct Refunds as "refunds" {
        /// Statuses of the service's answer, such as 304.
        status: OneOrMore<Whole>,
        /// Whether a request is given back that the service did not answer. By default false.
        upstream_failure: Flag,
    }
}

keys! {
    /// How a refusal looks.
    struct RefuseAnswer as "a refusal" {
        /// Its status, 400 to 599. By default 429.
        status: Whole,
    }
}
