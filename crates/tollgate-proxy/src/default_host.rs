//! The host of requests that name no host.

use http::{HeaderValue, Request, Version, header};

use crate::upstreams::Upstreams;

/// Sets the field `host` of a request that names no host, which only HTTP/1.0 permits, to the host
/// of the default upstream.
///
/// Call this before any decision on the request. Otherwise the policy would see no host, and the
/// upstream would receive one.
pub(crate) fn add_default_host<B>(request: &mut Request<B>, upstreams: &Upstreams) {
    let names_host =
        request.uri().authority().is_some() || request.headers().contains_key(header::HOST);
    if request.version() != Version::HTTP_10 || names_host {
        return;
    }
    let default = upstreams.default_group().first();
    let host = default.and_then(|one| HeaderValue::from_str(one.authority().as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
}
