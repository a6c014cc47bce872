//! The dashboard: a page for those who run a node, which asks the same paths as any other client.
//!
//! It is HTML, CSS and JavaScript as they stand in `assets/`: nothing is built, and nothing is
//! fetched from elsewhere. It holds no data; whoever opens it shows a token with each question.

mod assets;

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};

use assets::ASSETS;

/// Whether a listener has the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dashboard {
    /// Below `/dashboard/`.
    Enabled,
    /// Nothing is there.
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

/// What a path below the dashboard's leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AssetLookup {
    /// A file.
    Asset(&'static Asset),
    /// The place to ask instead.
    Redirect(&'static str),
    /// Nothing.
    Missing,
}

/// Where the dashboard is.
const ROOT: &str = "/dashboard";

/// Only what this listener serves runs, and it asks nobody else; what it writes into the page is text.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The fields of each of its answers.
const FIELDS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    // Another version of the process has other files under these names.
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// What `path` leads to; none if it is not the dashboard's.
pub(crate) fn find(path: &str) -> Option<AssetLookup> {
    let rest = path.strip_prefix(ROOT)?;
    let Some(name) = rest.strip_prefix('/') else {
        return rest.is_empty().then_some(AssetLookup::Redirect("dashboard/"));
    };
    let asset = ASSETS.iter().find(|asset| asset.path == name);
    Some(asset.map_or(AssetLookup::Missing, AssetLookup::Asset))
}

/// An answer: a file, or the way to one.
pub(crate) fn answer<B: From<Bytes> + Default>(found: AssetLookup) -> axum::http::Response<B> {
    let mut response = axum::http::Response::new(B::default());
    match found {
        AssetLookup::Asset(asset) => {
            *response.body_mut() = Bytes::from_static(asset.bytes).into();
            let media_type = HeaderValue::from_static(asset.media_type);
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        }
        AssetLookup::Redirect(place) => {
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(place));
        }
        AssetLookup::Missing => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    for (name, value) in FIELDS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
