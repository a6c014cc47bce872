//! Who is counted, as written.

use super::Keep;
use crate::decode::{Present, Text, Whole, keys};

keys! {
    /// Who is counted: exactly one source, and what belongs to it.
    struct Subject as "a subject" {
        /// The value of this header. `authorization`, `proxy-authorization`, `cookie` and the usual headers for API keys hold credentials: they are hashed before they are used.
        header: Text,
        /// The API key or bearer token in this header, such as `authorization` or `x-api-key`, hashed before it is used. `Bearer x`, `token x` and `x` are one.
        credential: Text,
        /// The value of the cookie of this name, hashed before it is used.
        cookie: Text,
        /// The client's address: the peer's, unless it is one of `trusted_proxies`.
        client_address: Present,
        /// The parameter of this name in the path pattern of the rule that matched.
        path_parameter: Text,
        /// The text or number at this JSON pointer in the request's body, such as `/model`. `tollgate proxy` reads JSON bodies of up to 256 KiB for it; to every other listener no request has it.
        json: Text,
        /// The host that was asked for, in lower case and without its port.
        host: Present,
        /// The path pattern of the rule that matched, or the rule's name if it has none.
        route: Present,
        /// The method.
        method: Present,
        /// The same value for everybody.
        constant: Text,
        /// With `client_address`: how many leading bits count of an IPv4 address, 1 to 32. By default 32.
        ipv4_prefix: Whole,
        /// With `client_address`: how many leading bits count of an IPv6 address, 1 to 128. By default 64, what one customer is usually given.
        ipv6_prefix: Whole,
        /// With `header`: how its value is kept. By default `hashed` for credentials, `clear` for others.
        keep: Keep,
    }
}
