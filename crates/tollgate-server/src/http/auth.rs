//! Access control by tokens.

use axum::http::{HeaderMap, header};

use super::options::HttpOptions;
use super::problem::{Kind, Problem};
use super::route::Audience;
use crate::access::Access;

/// Checks that the token in `headers` admits the caller to the routes for `audience`. Always
/// succeeds for public routes, and for routes of proxies, which check the token themselves.
pub(super) fn admit(
    options: &HttpOptions,
    audience: Audience,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let is_admin = |token| options.admin.as_ref().is_some_and(|admin| admin.admits(token));
    match (audience, &options.access) {
        // Proxies authenticate with another header field, which the route of `/v1/authorize`
        // checks.
        (Audience::Public | Audience::Proxy, _) | (Audience::Caller, Access::Open) => Ok(()),
        (Audience::Caller, access) => {
            let token = bearer_token(headers);
            if access.admits(token) || is_admin(token) { Ok(()) } else { Err(unknown(token)) }
        }
        (Audience::Admin, access) => {
            let token = bearer_token(headers);
            if is_admin(token) {
                return Ok(());
            }
            if !access.admits(token) {
                return Err(unknown(token));
            }
            let detail = "this path is for administrators: send the request to the admin listener";
            Err(Problem::new(Kind::Forbidden, detail))
        }
    }
}

/// The kind of caller, which decides how much a response contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// An administrator.
    Admin,
    /// A client, or a service that charges for its clients.
    Client,
}

/// Returns the kind of the caller that sent these `headers`.
pub(super) fn caller(options: &HttpOptions, headers: &HeaderMap) -> Caller {
    let is_admin = |admin: &Access| admin.admits(bearer_token(headers));
    if options.admin.as_ref().is_some_and(is_admin) { Caller::Admin } else { Caller::Client }
}

fn unknown(token: Option<&[u8]>) -> Problem {
    let detail = match token {
        Some(_) => "the token is not valid for this listener",
        None => "send `authorization: Bearer TOKEN` with one of the listener's tokens",
    };
    Problem::new(Kind::Unauthorized, detail)
}

/// Returns the token of `Authorization: Bearer TOKEN`, or `None` if the request has several such
/// fields.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let (line, None) = (lines.next()?.as_bytes(), lines.next()) else { return None };
    token_of(line)
}

/// Returns the token in `line`, which is the value of an `authorization` field. Returns `None` if
/// the scheme of the field is not `Bearer`.
pub(super) fn token_of(line: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = line.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}
