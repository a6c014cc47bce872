use http::{HeaderMap, Method, Request, StatusCode, Version, header};
use http_body::Body;
use tollgate_http::{Violation, is_host, same_host};

use crate::{problem::Problem, settings::Limits};

/// Refuses a request by its head alone, before it is charged or forwarded.
pub(crate) fn admit<B: Body>(request: &Request<B>, limits: &Limits) -> Result<(), Problem> {
    if request.method() == Method::CONNECT {
        return Err(Violation::Connect.into());
    }
    // The strict reader has checked the bytes of HTTP/1. HTTP/2 has another framing, but the same
    // rules apply.
    if request.version() == Version::HTTP_2 {
        check_sizes(request, limits)?;
        check_host(request)?;
    }
    check_expectation(request.headers())?;
    if request.body().size_hint().lower() > limits.request_body_bytes {
        return Err(crate::upload::UploadFault::TooLarge.into());
    }
    Ok(())
}

fn check_sizes<B>(request: &Request<B>, limits: &Limits) -> Result<(), Problem> {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    if target.len() > limits.target_bytes {
        return Err(Violation::TargetTooLong.into());
    }
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Violation::Target.into());
    }
    if target == "*" && request.method() != Method::OPTIONS {
        return Err(Violation::Target.into());
    }
    if request.headers().len() > limits.header_fields {
        return Err(Violation::TooManyFields.into());
    }
    Ok(())
}

/// Checks the host: HTTP/2 sends it in `:authority`, and a client may send `host` instead, or the
/// same value in both.
fn check_host<B>(request: &Request<B>) -> Result<(), Problem> {
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().map(|host| host.as_bytes());
    if hosts.next().is_some() {
        return Err(Violation::HostRepeated.into());
    }
    match (authority, host) {
        (None, None) => Err(Violation::HostMissing.into()),
        (Some(authority), Some(host)) if !same_host(authority, host) => {
            Err(Violation::HostMismatch.into())
        }
        (one, other) => match one.into_iter().chain(other).all(is_host) {
            true => Ok(()),
            false => Err(Violation::HostMalformed.into()),
        },
    }
}

/// Accepts only `100-continue`. The 100 response is sent when the body is first polled.
fn check_expectation(headers: &HeaderMap) -> Result<(), Problem> {
    let mut expectations = headers.get_all(header::EXPECT).iter();
    match expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::EXPECTATION_FAILED,
            "The only supported expectation is 100-continue.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;

    fn status(request: http::request::Builder) -> Option<u16> {
        let request = request.body(Empty::<bytes::Bytes>::new()).expect("a request");
        let limits = Limits { header_fields: 2, target_bytes: 10, ..Limits::default() };
        admit(&request, &limits).err().map(|problem| problem.status.as_u16())
    }

    fn http2(uri: &str) -> http::request::Builder {
        Request::builder().version(Version::HTTP_2).uri(uri)
    }

    #[test]
    fn http2_obeys_the_rules_of_http1() {
        assert_eq!(status(http2("http://a/")), None);
        assert_eq!(status(http2("http://a/").header("host", "A:80")), None);
        assert_eq!(status(http2("/").header("host", "a")), None);
        assert_eq!(status(http2("/")), Some(400));
        assert_eq!(status(http2("http://a/").header("host", "b")), Some(400));
        assert_eq!(status(http2("http://u@a/")), Some(400));
        assert_eq!(status(http2("http://a/").header("host", "a").header("host", "a")), Some(400));
        assert_eq!(status(http2("http://a/\u{e9}")), Some(400));
        assert_eq!(status(http2("http://a/0123456789")), Some(414));
        let many = http2("http://a/").header("a", "1").header("b", "2").header("c", "3");
        assert_eq!(status(many), Some(431));
        assert_eq!(status(http2("*").header("host", "a")), Some(400));
        assert_eq!(status(http2("*").header("host", "a").method(Method::OPTIONS)), None);
        assert_eq!(status(http2("a:80").method(Method::CONNECT)), Some(501));
    }

    #[test]
    fn only_100_continue_may_be_expected() {
        assert_eq!(status(http2("http://a/").header("expect", "100-Continue")), None);
        assert_eq!(status(http2("http://a/").header("expect", "tea")), Some(417));
    }
}
