//! The key `answers`: responses to clients, and refunds.

use super::choices::{OnFailureName, ProfileName};
use crate::decode::{Flag, Integer, Names, OneOrMore, StatusRange, Text, keys};

keys! {
    /// The responses to clients, and when a charge is refunded.
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
    /// The response to a refused request. A limit and a rule can each have their own `refuse`. The
    /// `refuse` of the limit that refused applies as a whole. If that limit has none, the `refuse`
    /// of a rule that matched applies, and otherwise the `refuse` of `answers`.
    struct RefuseAnswer as "a refusal" {
        /// The status of the response, 400 to 599. By default the status in `answers.refuse`, or
        /// 429.
        status: Integer,
        /// Further header fields, up to 16, such as `{ cache-control: no-store }`.
        headers: Names<Text>,
        /// The address of a page about the limits, for the header field `Link` and for templates.
        documentation: Text,
        /// The body, instead of problem details (RFC 9457).
        body: RefusalBody,
    }
}

keys! {
    /// The bodies of a refusal. If there is only one, every client receives it. If there are
    /// several, a client receives the one that it prefers by its header field `Accept`, and problem
    /// details are one more choice. A client without a preference receives JSON, or problem details
    /// if `json` is not set. In templates `{{limit}}`, `{{rule}}`, `{{documentation}}` are texts
    /// and `{{quota}}`, `{{remaining}}`, `{{reset}}`, `{{retry_after}}`, `{{status}}` are numbers.
    /// Texts are escaped for JSON and HTML.
    struct RefusalBody as "a body" {
        /// A template in JSON, such as `{"error": "{{limit}}", "wait": {{retry_after}}}`.
        json: Text,
        /// A template in HTML.
        html: Text,
        /// A template in plain text.
        text: Text,
    }
}
