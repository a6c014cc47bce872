//! The dashboard: a web page for operators, which uses the same HTTP API as other clients.
//!
//! The dashboard consists of the HTML, CSS and JavaScript files in `assets/`, without a build step,
//! and loads nothing from other hosts. The page contains no data. The browser sends the operator's
//! token with each request.

mod assets;

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};

use assets::ASSETS;

/// Whether a listener serves the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dashboard {
    /// The listener serves the dashboard below `/dashboard/`.
    Enabled,
    /// The listener does not serve the dashboard.
    #[default]
    Disabled,
}

/// A file of the dashboard.
#[derive(Debug)]
pub(crate) struct Asset {
    path: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

/// The result of looking up a path of the dashboard.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AssetLookup {
    /// The path belongs to this file.
    Asset(&'static Asset),
    /// The path is redirected to this path.
    Redirect(&'static str),
    /// The path belongs to no file.
    Missing,
}

/// The path of the dashboard.
const ROOT: &str = "/dashboard";

/// The content security policy of the page. Only scripts of this listener run, and they connect
/// only to this listener. Trusted types are required, so the scripts can only insert text into the
/// page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The header fields of every response of the dashboard.
const FIELDS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    // Another version of Tollgate has other files with the same names, so no file is cached.
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Looks up the file of `path`. Returns `None` if `path` is not a path of the dashboard.
pub(crate) fn find(path: &str) -> Option<AssetLookup> {
    let rest = path.strip_prefix(ROOT)?;
    let Some(name) = rest.strip_prefix('/') else {
        return rest.is_empty().then_some(AssetLookup::Redirect("dashboard/"));
    };
    let asset = ASSETS.iter().find(|asset| asset.path == name);
    Some(asset.map_or(AssetLookup::Missing, AssetLookup::Asset))
}

/// Returns the response for a file or a redirect.
pub(crate) fn answer<B: From<Bytes> + Default>(found: AssetLookup) -> axum::http::Response<B> {
    let mut response = axum::http::Response::new(B::default());
    match found {
        AssetLookup::Asset(asset) => {
            *response.body_mut() = Bytes::from_static(asset.bytes).into();
            let media_type = HeaderValue::from_static(asset.media_type);
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        }
        AssetLookup::Redirect(location) => {
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(location));
        }
        AssetLookup::Missing => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    for (name, value) in FIELDS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
