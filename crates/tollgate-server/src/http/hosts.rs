//! Checks of the host and the origin of requests, to keep pages of other sites away from a
//! listener.
//!
//! A browser lets any page send requests to an address on the local machine. Two header fields
//! distinguish such a request from an administrator's request. If the page resolved its own host
//! name to that address (DNS rebinding), `host` contains that foreign name. If the page is on
//! another site, `origin` contains that site.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::problem::{Kind, Problem};
use super::route::Route;
use crate::access::Access;
use crate::listen::Listen;

/// The header field in which browsers send the relation of the page's site to the target's site.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The length of the longest authority that a connection remembers, in bytes: a name has at most
/// 253, and a colon and a port 6.
const MAX_ADMITTED_BYTES: usize = 259;

/// The authority of the first admitted request of a connection. Later requests with the same bytes
/// need no further check of the name.
#[derive(Debug, Default)]
pub(super) struct AdmittedHost(OnceLock<Box<str>>);

/// The host names by which browsers may reach a listener.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    reach: HostPolicy,
    listed: Arc<[Box<str>]>,
    /// The policy key under `serve` that lists the names.
    key: &'static str,
}

/// The names that are allowed without being listed. An IP address is always safe, because DNS
/// rebinding needs a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostPolicy {
    /// `localhost` and loopback addresses are allowed.
    Loopback,
    /// `localhost` and every address are allowed.
    Addresses,
    /// Every name is allowed, because reading requires a token or a certificate proves the name.
    Any,
}

impl AllowedHosts {
    /// Creates the names of a listener at `listen` with the access control `access`. The allowed
    /// names are the names in `listed`, in lower case and without a port, and the names that are
    /// safe at this address without being listed.
    #[must_use]
    pub fn new(listen: &Listen, access: &Access, listed: &[Box<str>]) -> Self {
        let reach = match (listen, access) {
            (Listen::Tcp(_), _) if listen.is_local() => HostPolicy::Loopback,
            // A browser cannot connect to a unix domain socket.
            (Listen::Unix(_), _) => HostPolicy::Any,
            (_, Access::Tokens(_)) if listed.is_empty() => HostPolicy::Any,
            _ => HostPolicy::Addresses,
        };
        Self { reach, listed: listed.into(), key: "dashboard" }
    }

    /// Creates the names of a listener with a certificate: the names in `listed`, or any name if
    /// the list is empty. A page that resolves its own name to this listener's address has no
    /// certificate for that name.
    #[must_use]
    pub fn certified(listed: &[Box<str>]) -> Self {
        let reach = if listed.is_empty() { HostPolicy::Any } else { HostPolicy::Addresses };
        Self { reach, listed: listed.into(), key: "dashboard" }
    }

    /// Returns the same names for the HTTP listener, which programs use, instead of the admin
    /// listener. The requests that proxies send to the HTTP listener on behalf of their clients may
    /// have any host.
    #[must_use]
    pub fn for_programs(self) -> Self {
        Self { key: "http", ..self }
    }

    /// Returns whether a request for `route` may have any host.
    pub(super) fn are_any_for(&self, route: Route) -> bool {
        route.is_probe()
            || matches!(route, Route::Authorize)
            || self.key == "http" && route.is_of_proxies()
    }

    /// Checks that a request uses an allowed name of the listener. If the request changes
    /// something, the function also checks that the request does not come from a page of another
    /// site. `admitted` belongs to the connection of the request.
    pub(super) fn admit(&self, head: &Parts, admitted: &AdmittedHost) -> Result<(), Problem> {
        let called = called(head)?;
        if let Some(called) = &called
            && !admitted.is(called)
        {
            self.expect_known(called)?;
            admitted.remember(called);
        }
        if matches!(head.method, Method::GET | Method::HEAD)
            || is_own(&head.headers, called.as_deref())
        {
            return Ok(());
        }
        Err(is_cross_site())
    }

    fn expect_known(&self, called: &Authority) -> Result<(), Problem> {
        if self.know(called) {
            return Ok(());
        }
        let (host, key) = (called.host(), self.key);
        let detail = format!(
            "the host {host:?} is not allowed: use the listener's address, or add the host to the \
             policy file: `serve: {{ {key}: {{ hosts: [{host:?}] }} }}`"
        );
        Err(Problem::new(Kind::Misdirected, detail))
    }

    /// Returns whether `host` is an allowed name. If it is, [`admit`](Self::admit) admits every
    /// request with this host that has none of the fields which browsers add to requests of a page.
    pub(super) fn allow(&self, host: &[u8]) -> bool {
        let host = std::str::from_utf8(host).ok().filter(|host| host.is_ascii());
        let called = host.and_then(|host| host.parse::<Authority>().ok());
        called.is_some_and(|called| self.know(&called))
    }

    fn know(&self, called: &Authority) -> bool {
        if self.reach == HostPolicy::Any {
            return true;
        }
        // The parser of the HTTP library also accepts a user, and a port that is not a number.
        let host = called.host();
        let is_port = |rest: &str| {
            rest.strip_prefix(':')
                .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let rest = called.as_str().strip_prefix(host);
        if !rest.is_some_and(|rest| rest.is_empty() || is_port(rest)) {
            return false;
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if self.listed.iter().any(|listed| **listed == *name) {
            return true;
        }
        let digits = name.trim_start_matches('[').trim_end_matches(']');
        match digits.parse::<IpAddr>() {
            Ok(address) => {
                self.reach == HostPolicy::Addresses || address.to_canonical().is_loopback()
            }
            Err(_) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

impl AdmittedHost {
    fn is(&self, called: &Authority) -> bool {
        self.0.get().is_some_and(|admitted| **admitted == *called.as_str())
    }

    fn remember(&self, called: &Authority) {
        if called.as_str().len() <= MAX_ADMITTED_BYTES {
            self.0.get_or_init(|| called.as_str().into());
        }
    }
}

/// Checks that the request does not come from a page of another site. The host name of the request
/// is not checked.
pub(super) fn expect_own(head: &Parts) -> Result<(), Problem> {
    if is_own(&head.headers, called(head)?.as_deref()) { Ok(()) } else { Err(is_cross_site()) }
}

fn is_cross_site() -> Problem {
    Problem::new(Kind::CrossSite, "requests from pages of other sites are refused")
}

/// Returns the authority of a request. `None` is possible only in HTTP/1.0, which no browser uses.
fn called(head: &Parts) -> Result<Option<Cow<'_, Authority>>, Problem> {
    let mut lines = head.headers.get_all(header::HOST).iter();
    let named = match (lines.next(), lines.next()) {
        (None, _) => None,
        (Some(line), None) => Some(authority(line).ok_or_else(no_host)?),
        (Some(_), Some(_)) => return Err(no_host()),
    };
    match (head.uri.authority(), named) {
        // Two different names are refused, because this check could use one of them and another
        // component the other.
        (Some(target), Some(named)) if *target != named => Err(no_host()),
        (Some(target), _) => Ok(Some(Cow::Borrowed(target))),
        (None, named) => Ok(named.map(Cow::Owned)),
    }
}

fn authority(line: &HeaderValue) -> Option<Authority> {
    line.to_str().ok()?.parse().ok()
}

fn no_host() -> Problem {
    Problem::new(Kind::Misdirected, "the request must have exactly one valid host")
}

/// Returns whether the request comes from a page of this listener, or does not come from a page at
/// all.
fn is_own(headers: &HeaderMap, called: Option<&Authority>) -> bool {
    let mut sites = headers.get_all(&SITE).iter();
    if !sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
        return false;
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    origins.all(|origin| {
        let text = origin.to_str().unwrap_or_default();
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let host = rest.parse::<Authority>().ok();
        matches!(scheme, "http" | "https") && host.is_some() && host.as_ref() == called
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::access::Tokens;

    fn tokens() -> Access {
        Access::Tokens(Tokens::parse("0123456789abcdef").unwrap())
    }

    fn hosts(listen: &str, access: &Access, listed: &[&str]) -> AllowedHosts {
        let listed: Vec<Box<str>> = listed.iter().map(|name| (*name).into()).collect();
        AllowedHosts::new(&listen.parse().unwrap(), access, &listed)
    }

    fn status(hosts: &AllowedHosts, method: &str, fields: &[(&str, &str)]) -> u16 {
        let request = Request::builder().method(method).uri("/v1/status");
        let request =
            fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (head, ()) = request.body(()).unwrap().into_parts();
        hosts
            .admit(&head, &AdmittedHost::default())
            .map_or_else(|problem| problem.status().as_u16(), |()| 200)
    }

    #[test]
    fn a_listener_on_loopback_has_the_names_of_loopback_and_those_that_are_listed() {
        for access in [Access::Open, tokens()] {
            let hosts = hosts("127.0.0.1:8182", &access, &["admin.example"]);
            for (host, expected) in [
                ("localhost", 200),
                ("LOCALHOST:8182", 200),
                ("localhost.:8182", 200),
                ("node.localhost", 200),
                ("127.0.0.1:8182", 200),
                ("127.8.9.10", 200),
                ("[::1]:8182", 200),
                ("[::ffff:127.0.0.1]", 200),
                ("admin.example:443", 200),
                ("Admin.Example.", 200),
                ("evil.example", 421),
                ("localhost.evil.example", 421),
                ("127.0.0.1.evil.example", 421),
                ("evillocalhost", 421),
                ("admin.example.evil", 421),
                ("10.0.0.5", 421),
                ("0.0.0.0:8182", 421),
                ("2130706433", 421),
                ("localhost@evil.example", 421),
                ("", 421),
                ("a b", 421),
            ] {
                assert_eq!(status(&hosts, "GET", &[("host", host)]), expected, "{host:?}");
            }
        }
    }

    #[test]
    fn a_listener_on_a_network_has_its_addresses_and_with_tokens_every_name() {
        let open = hosts("0.0.0.0:8182", &Access::Open, &[]);
        let guarded = hosts("0.0.0.0:8182", &tokens(), &[]);
        let listed = hosts("systemd:admin", &tokens(), &["admin.example"]);
        for (host, expected) in [
            ("10.0.0.5:8182", [200, 200, 200]),
            ("[2001:db8::1]", [200, 200, 200]),
            ("localhost", [200, 200, 200]),
            ("admin.example", [421, 200, 200]),
            ("evil.example", [421, 200, 421]),
        ] {
            let outcome =
                [&open, &guarded, &listed].map(|hosts| status(hosts, "GET", &[("host", host)]));
            assert_eq!(outcome, expected, "{host}");
        }
    }

    #[test]
    fn a_connection_remembers_only_the_first_admitted_host() {
        let hosts = hosts("127.0.0.1:8182", &Access::Open, &["admin.example"]);
        let admitted = AdmittedHost::default();
        let status = |host: &str, is_target: bool, admitted: &AdmittedHost| {
            let request = match is_target {
                true => Request::builder().uri(format!("http://{host}/v1/status")),
                false => Request::builder().uri("/v1/status").header("host", host),
            };
            let (head, ()) = request.body(()).unwrap().into_parts();
            hosts.admit(&head, admitted).map_or_else(|problem| problem.status().as_u16(), |()| 200)
        };
        // A refused host is not remembered.
        assert_eq!(status("evil.example", true, &admitted), 421);
        assert!(admitted.0.get().is_none());
        for is_target in [true, false, true] {
            let mut refused = 0;
            for host in [
                "admin.example:443",
                "Admin.Example:443",
                "admin.example",
                "admin.example:4430",
                "admin.example:443@evil.example",
                "admin.example:443.evil.example",
                "user@admin.example:443",
                "admin.example.evil.example:443",
                "evil.example",
                "evil.example:443",
                "127.0.0.1",
            ] {
                let expected = status(host, is_target, &AdmittedHost::default());
                assert_eq!(status(host, is_target, &admitted), expected, "{host:?}");
                assert_eq!(admitted.0.get().map(|host| &**host), Some("admin.example:443"));
                refused += usize::from(expected == 421);
            }
            assert_eq!(refused, 6);
        }
        // The fields of a page are checked on each request, also with the remembered host.
        let (head, ()) = Request::post("http://admin.example:443/v1/check")
            .header("origin", "http://evil.example")
            .body(())
            .unwrap()
            .into_parts();
        assert_eq!(hosts.admit(&head, &admitted).unwrap_err().status(), 403);
        let named = |authority: &str| authority.parse::<Authority>().unwrap();
        let other = AdmittedHost::default();
        other.remember(&named(&"a".repeat(MAX_ADMITTED_BYTES + 1)));
        assert!(other.0.get().is_none());
        other.remember(&named(&"a".repeat(MAX_ADMITTED_BYTES)));
        assert!(other.is(&named(&"a".repeat(MAX_ADMITTED_BYTES))));
    }

    #[test]
    fn pages_elsewhere_change_nothing() {
        let hosts = hosts("127.0.0.1:8182", &Access::Open, &[]);
        let own = ("host", "127.0.0.1:8182");
        for (field, expected) in [
            (("origin", "http://127.0.0.1:8182"), 200),
            (("origin", "https://127.0.0.1:8182"), 200),
            (("origin", "http://127.0.0.1:9999"), 403),
            (("origin", "http://127.0.0.1"), 403),
            (("origin", "http://localhost:8182"), 403),
            (("origin", "http://evil.example"), 403),
            (("origin", "http://127.0.0.1:8182.evil.example"), 403),
            (("origin", "http://evil@127.0.0.1:8182"), 403),
            (("origin", "file://127.0.0.1:8182"), 403),
            (("origin", "null"), 403),
            (("origin", ""), 403),
            (("sec-fetch-site", "same-origin"), 200),
            (("sec-fetch-site", "same-site"), 403),
            (("sec-fetch-site", "cross-site"), 403),
        ] {
            for method in ["POST", "PUT", "DELETE", "PATCH"] {
                assert_eq!(status(&hosts, method, &[own, field]), expected, "{method} {field:?}");
            }
            // A cross-site read needs no check: without CORS fields, the browser does not pass the
            // response to the page.
            assert_eq!(status(&hosts, "GET", &[own, field]), 200, "{field:?}");
        }
        assert_eq!(status(&hosts, "DELETE", &[own]), 200, "no page made this");
        let twice = [own, ("host", "evil.example")];
        assert_eq!(status(&hosts, "GET", &twice), 421);
        let both = [own, ("origin", "http://127.0.0.1:8182"), ("origin", "http://evil.example")];
        assert_eq!(status(&hosts, "DELETE", &both), 403);
    }
}
