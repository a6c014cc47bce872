//! Who may ask.

use axum::http::{HeaderMap, header};

use super::app::HttpOptions;
use super::problem::{Kind, Problem};
use super::route::Audience;
use crate::access::Access;

/// Lets only those pass who may ask for what needs `entry`.
pub(super) fn admit(
    options: &HttpOptions,
    audience: Audience,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let is_admin = |token| options.admin.as_ref().is_some_and(|admin| admin.admits(token));
    match (audience, &options.access) {
        // Proxies show themselves otherwise, which their route looks at.
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
            let detail = "this is for administrators: ask the listener that is opened for them";
            Err(Problem::new(Kind::Forbidden, detail))
        }
    }
}

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Those who run it.
    Admin,
    /// Those who are limited, and whoever asks for them.
    Client,
}

/// Who is told that asks with these `headers`.
pub(super) fn caller(options: &HttpOptions, headers: &HeaderMap) -> Caller {
    let is_admin = |admin: &Access| admin.admits(bearer_token(headers));
    if options.admin.as_ref().is_some_and(is_admin) { Caller::Admin } else { Caller::Client }
}

fn unknown(token: Option<&[u8]>) -> Problem {
    let detail = match token {
        Some(_) => "this token opens nothing here",
        None => "send `authorization: Bearer TOKEN` with one of the listener's tokens",
    };
    Problem::new(Kind::Unauthorized, detail)
}

/// The token of `Authorization: Bearer TOKEN`; none if there are several fields.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let (line, None) = (lines.next()?.as_bytes(), lines.next()) else { return None };
    let (scheme, token) = line.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}
