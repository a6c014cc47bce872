//! Hop-by-hop fields, which concern one connection and not the message (RFC 9110, 7.6.1).
//!
//! The lists are written by hand, because `http` and `hyper` keep all fields. A reverse proxy also
//! needs two rules that the RFC does not have: for fields that a client must not remove by
//! nominating them in `Connection`, and for fields with `_` that a server may read as other fields.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::forwarded::is_forwarding_field;
use crate::request_fields::RequestFields;

/// The fields that are removed from every message, whether `Connection` nominates them or not.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("http2-settings"),
];

/// The fields that are kept even if `Connection` nominates them as hop-by-hop. Without `host`,
/// `content-length` or `cookie`, the message would have another meaning. Without `expect`, the
/// proxy would ask the client for the body too early.
const END_TO_END: [HeaderName; 4] =
    [header::HOST, header::CONTENT_LENGTH, header::COOKIE, header::EXPECT];

/// The fields that are not allowed in a trailer section, because they would change the framing,
/// routing or authorization of a message that is already being forwarded.
const NO_TRAILERS: [HeaderName; 5] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::AUTHORIZATION,
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
];

/// Fields that frame, route or authenticate a request.
///
/// Servers that treat `-` and `_` as the same, as CGI does, read `Content_Length` as
/// `Content-Length`. The limiter treats them as two different fields, so the proxy removes the
/// spellings with `_`.
const NOT_WITH_UNDERSCORES: [&str; 12] = [
    "api-key",
    "content-encoding",
    "content-length",
    "content-type",
    "private-token",
    "proxy-authorization",
    "transfer-encoding",
    "x-access-token",
    "x-api-key",
    "x-auth-token",
    "x-goog-api-key",
    "x-session-token",
];

/// Removes request fields that have `_` in their names and that a server might read as another
/// field: as a field that [frames, routes or authenticates](NOT_WITH_UNDERSCORES) the request, as a
/// field that the [policy reads](RequestFields), or as a field that the request also contains with
/// `-`.
pub(crate) fn remove_underscored(headers: &mut HeaderMap, policy_fields: &RequestFields) {
    let is_read_twice = |name: &&HeaderName| {
        name.as_str().contains('_') && {
            let dashed = name.as_str().replace('_', "-");
            NOT_WITH_UNDERSCORES.contains(&&*dashed)
                || headers.contains_key(&*dashed)
                || policy_fields.load().contains(&*dashed)
        }
    };
    let removed: Vec<HeaderName> = headers.keys().filter(is_read_twice).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// Removes the hop-by-hop fields and the fields that `Connection` nominates.
pub(crate) fn strip(headers: &mut HeaderMap) {
    if has_connection_fields(headers) {
        remove(headers);
    }
}

/// Returns whether a message has hop-by-hop fields. Nearly no message has them, and a single pass
/// over the fields is faster than a look-up of each hop-by-hop name.
pub(crate) fn has_connection_fields(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| HOP_BY_HOP.contains(name))
}

/// Removes the hop-by-hop fields from `headers`. Call this function only if `headers` [has such
/// fields](has_connection_fields).
pub(crate) fn remove(headers: &mut HeaderMap) {
    let nominated: Vec<HeaderName> = tokens(headers, &header::CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
        .filter(|name| !is_end_to_end(name))
        .collect();
    for name in nominated.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Returns whether the field `name` is kept although `Connection` nominates it. This applies to
/// [`END_TO_END`] and to forwarding fields. If forwarding fields were removed, a client behind a
/// trusted proxy could nominate `X-Forwarded-For`, and would then be limited under the address of
/// that proxy instead of its own.
fn is_end_to_end(name: &HeaderName) -> bool {
    END_TO_END.contains(name) || is_forwarding_field(name.as_str())
}

/// Removes from a trailer section the fields that are allowed only in a head.
pub(crate) fn strip_trailers(trailers: &mut HeaderMap) {
    strip(trailers);
    for name in &NO_TRAILERS {
        trailers.remove(name);
    }
}

/// Returns whether the sender of a request with these fields accepts trailers in the response.
pub(crate) fn accepts_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &header::TE).any(|token| token.eq_ignore_ascii_case("trailers"))
}

/// Sets the fields `te: trailers` and `connection: te`, which inform the upstream that the proxy
/// accepts trailers.
pub(crate) fn request_trailers(headers: &mut HeaderMap) {
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
}

/// Returns whether the field `Connection` nominates `option`, such as the name of a hop-by-hop
/// field.
pub(crate) fn nominates(headers: &HeaderMap, option: &str) -> bool {
    tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case(option))
}

/// Returns the members of the list field `name` from all its lines. Lines that are not ASCII are
/// skipped.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn hop_by_hop_and_nominated_fields_go() {
        let mut headers = headers(&[
            ("connection", "close, X-One"),
            ("connection", "x-two ,, keep-alive"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
            ("proxy-authorization", "Basic eDp5"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
        ]);
        strip(&mut headers);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-three"]);
    }

    #[test]
    fn what_makes_the_message_cannot_be_nominated_away() {
        let mut headers = headers(&[
            ("connection", "host, content-length, cookie, expect"),
            ("host", "a"),
            ("content-length", "1"),
            ("cookie", "a=b"),
            ("expect", "100-continue"),
        ]);
        strip(&mut headers);
        assert_eq!(headers.len(), 4);
    }

    #[test]
    fn who_asks_cannot_be_nominated_away() {
        let mut headers = headers(&[
            ("connection", "X-Forwarded-For, forwarded, x-forwarded-proto, X-Real-IP"),
            ("connection", "x_forwarded_for"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x_forwarded_for", "198.51.100.1"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "198.51.100.1"),
            ("forwarded", "for=198.51.100.1"),
        ]);
        strip(&mut headers);
        assert_eq!(headers.len(), 5);
    }

    #[test]
    fn trailers_keep_their_own_fields_only() {
        let mut trailers =
            headers(&[("digest", "x"), ("host", "a"), ("x-forwarded-for", "1.1.1.1")]);
        strip_trailers(&mut trailers);
        assert_eq!(trailers.len(), 1);
        assert!(trailers.contains_key("digest"));
    }

    #[test]
    fn te_is_read_as_a_list() {
        assert!(accepts_trailers(&headers(&[("te", "gzip, Trailers")])));
        assert!(!accepts_trailers(&headers(&[("te", "gzip")])));
    }
}
