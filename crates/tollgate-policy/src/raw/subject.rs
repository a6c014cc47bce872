//! The key `subjects`: one subject.

use super::{CertificateNameWord, KeepMode, UnreadName};
use crate::decode::{Flag, Integer, List, Present, Text, keys};

keys! {
    /// A subject: exactly one source, and the options of that source.
    struct Subject as "a subject" {
        /// The value of this header. `authorization`, `proxy-authorization`, `cookie` and the usual
        /// headers for API keys contain credentials: they are hashed before use.
        header: Text,
        /// The API key or bearer token in this header, such as `authorization` or `x-api-key`,
        /// hashed before use. `Bearer x`, `token x` and `x` are the same subject; in `authorization`,
        /// `token="x"` too.
        credential: Text,
        /// The value of the cookie with this name, hashed before use.
        cookie: Text,
        /// The value of this parameter of the query, decoded. By default it is hashed before use.
        query: Text,
        /// A text made by an expression in a part of the Common Expression Language (CEL), such as
        /// `request.host + request.path`. An empty text is no subject. It is hashed before use if it is made from cookies, parameters
        /// or credentials.
        expression: Text,
        /// A claim of the token of the request, such as `sub`, or `/realm/tenant` for a claim in another. A token
        /// that is not accepted has no claims. Needs `jwt`, the keys of tokens.
        claim: Text,
        /// The client's address: the address of the connection, or the forwarded address if the
        /// connection comes from one of `trusted_proxies`.
        client_address: Present,
        /// The parameter with this name in the path pattern of the matching rule.
        path_parameter: Text,
        /// The segment with this number in the path, from 1 to 32: 2 is `acme` in `/tenants/acme/users`.
        path_segment: Integer,
        /// The text or whole number at this JSON pointer in the request body, such as `/model`. For this,
        /// `tollgate proxy` reads JSON bodies of up to 256 KiB. At all other listeners no request
        /// has this subject.
        json: Text,
        /// A name in the certificate that the client presented to `tollgate proxy` on its TLS
        /// connection (`--tls-client-ca`). No header can set it. At all other listeners no request has
        /// this subject.
        tls_client: CertificateNameWord,
        /// The requested host, in lower case and without its port.
        host: Present,
        /// The path pattern of the matching rule, or the rule's name if it has no pattern.
        route: Present,
        /// The method.
        method: Present,
        /// The same value for all clients.
        constant: Text,
        /// The first of these subjects that the request has, such as `[user, address]`: 2 to 8 other
        /// subjects. Its value is `user:ann` or `address:192.0.2.1`.
        first_of: List<Text>,
        /// With `client_address`: how many leading bits of an IPv4 address count, 1 to 32. By
        /// default 32.
        ipv4_prefix: Integer,
        /// With `client_address`: how many leading bits of an IPv6 address count, 1 to 128. By
        /// default 64, which is the usual size of one customer's network.
        ipv6_prefix: Integer,
        /// With `json`: the answer to a request with a body in which the subject cannot be read. By default `pass`.
        unread: UnreadName,
        /// With `header`, `query` or `expression`: how its value is stored. By default `hashed` for credentials,
        /// cookies and parameters of the query, `clear` for other headers and attributes.
        keep: KeepMode,
        /// Whether clients cannot choose the value, because a gateway in front sets it and removes the
        /// client's own. Required if the subject selects a quota or a billing day and clients can choose
        /// its value: with `header`, `query`, `json`, `path_parameter`, `path_segment`, `host`,
        /// `expression`, and `claim` if tokens are `unverified`. By default false.
        trusted: Flag,
    }
}
