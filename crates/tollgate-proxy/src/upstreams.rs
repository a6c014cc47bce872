//! The servers behind a proxy, and the routes that select them.

use std::{error::Error as StdError, fmt, str::FromStr};

use crate::upstream::{Upstream, UpstreamError};

/// The largest number of routes of a proxy. Routes with the same prefix or rule count as one route.
pub const MAX_ROUTES: usize = 256;
/// The largest number of upstreams of one route, and also of upstreams for requests without a
/// route.
pub const MAX_UPSTREAMS: usize = 64;

/// The servers behind a proxy: one or several for each route, and one or several for all other
/// requests.
///
/// ```
/// use tollgate_proxy::{Route, Upstream, Upstreams};
///
/// let default: Upstream = "http://127.0.0.1:9000".parse()?;
/// let route: Route = "/api=http://127.0.0.1:9001".parse()?;
/// let upstreams = Upstreams::new(vec![default], vec![route])?;
/// # let _ = upstreams;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstreams {
    default: Vec<Upstream>,
    routes: Vec<(RouteMatch, Vec<Upstream>)>,
}

/// A route: a server, and the requests that are forwarded to it. A route is parsed from
/// `PREFIX=URL` or `HOST/PREFIX=URL`, for requests with a path that begins with the prefix, or from
/// `rule:NAME=URL`, for requests that a rule of the policy matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    requests: RouteMatch,
    upstream: Upstream,
}

/// The requests that a route serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    Prefix(RoutePrefix),
    /// The requests that match the rule with this name in the policy.
    Rule(Box<str>),
}

/// A host and the start of a path, which select the requests of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoutePrefix {
    /// The host in lower case, or `None` for any host.
    host: Option<String>,
    /// The start of the path. It is empty, or starts with `/` and does not end with `/`.
    path: String,
}

/// The reason why routes or upstreams are not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// The text does not have the form `PREFIX=URL` or `rule:NAME=URL`.
    Form {
        /// The text of the route.
        given: String,
    },
    /// The URL of the route is not valid for this reason.
    Upstream(UpstreamError),
    /// No upstream is given for the requests without a route.
    NoUpstream,
    /// There are more routes than [`MAX_ROUTES`], or there are more upstreams than
    /// [`MAX_UPSTREAMS`] for one route or for the requests without a route.
    TooMany {
        /// The word for what there is too much of: `routes` or `upstreams`.
        what: &'static str,
        /// The largest number that is allowed.
        most: usize,
    },
}

impl Upstreams {
    /// Creates upstreams from `default`, which contains at least one server, and from `routes`.
    /// Routes with the same prefix or rule share the requests of that prefix or rule.
    ///
    /// A request goes to the first of these that exists: the route of the first rule that matched
    /// the request; among the routes with the request's host, the route with the longest matching
    /// prefix; among the routes without a host, the route with the longest matching prefix;
    /// `default`.
    ///
    /// # Errors
    /// [`RouteError`] if there is no upstream, or too many.
    pub fn new(default: Vec<Upstream>, routes: Vec<Route>) -> Result<Self, RouteError> {
        if default.is_empty() {
            return Err(RouteError::NoUpstream);
        }
        let mut grouped: Vec<(RouteMatch, Vec<Upstream>)> = Vec::new();
        for Route { requests, upstream } in routes {
            match grouped.iter_mut().find(|(known, _)| *known == requests) {
                Some((_, upstreams)) => upstreams.push(upstream),
                None => grouped.push((requests, vec![upstream])),
            }
        }
        if grouped.len() > MAX_ROUTES {
            return Err(RouteError::TooMany { what: "routes", most: MAX_ROUTES });
        }
        let routed = grouped.iter().map(|(_, upstreams)| upstreams.len()).max();
        if default.len().max(routed.unwrap_or(0)) > MAX_UPSTREAMS {
            return Err(RouteError::TooMany { what: "upstreams", most: MAX_UPSTREAMS });
        }
        Ok(Self { default, routes: grouped })
    }

    /// Returns whether any of the servers is reached over TLS.
    #[must_use]
    pub fn use_tls(&self) -> bool {
        let routed = self.routes.iter().flat_map(|(_, upstreams)| upstreams);
        self.default.iter().chain(routed).any(Upstream::is_https)
    }

    pub(crate) fn default_group(&self) -> &[Upstream] {
        &self.default
    }

    /// Returns the names of the rules that have a route. For these routes to apply, the layer in
    /// front of the proxy must report the [rules that
    /// matched](tollgate::tower::Layer::with_matched_rules).
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().filter_map(|(requests, _)| match requests {
            RouteMatch::Rule(name) => Some(&**name),
            RouteMatch::Prefix(_) => None,
        })
    }

    pub(crate) fn routes(&self) -> impl Iterator<Item = (&RouteMatch, &[Upstream])> {
        self.routes.iter().map(|(requests, upstreams)| (requests, &**upstreams))
    }
}

impl From<Upstream> for Upstreams {
    fn from(upstream: Upstream) -> Self {
        Self { default: vec![upstream], routes: Vec::new() }
    }
}

impl fmt::Display for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |upstreams: &[Upstream]| {
            upstreams.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        f.write_str(&list(&self.default))?;
        for (requests, upstreams) in &self.routes {
            match requests {
                RouteMatch::Prefix(RoutePrefix { host, path }) => {
                    write!(f, "; {}{path}/", host.as_deref().unwrap_or_default())?;
                }
                RouteMatch::Rule(name) => write!(f, "; rule {name}")?,
            }
            write!(f, " to {}", list(upstreams))?;
        }
        Ok(())
    }
}

impl RoutePrefix {
    /// Returns whether a request for `path` at `host` belongs to the route. `host` may have a port.
    /// The prefix matches only whole segments: `/api` does not match `/apis`.
    pub(crate) fn matches(&self, host: &[u8], path: &str) -> bool {
        let is_host = self.host.as_ref().is_none_or(|own| {
            let (named, port) = host.split_at(own.len().min(host.len()));
            named.eq_ignore_ascii_case(own.as_bytes()) && (port.is_empty() || port[0] == b':')
        });
        let rest = path.strip_prefix(&*self.path);
        is_host && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }

    /// Returns a key by which prefixes are compared. If several prefixes match a request, the route
    /// of the prefix with the greatest key serves the request.
    pub(crate) fn specificity(&self) -> (bool, usize) {
        (self.host.is_some(), self.path.len())
    }
}

impl FromStr for Route {
    type Err = RouteError;

    fn from_str(text: &str) -> Result<Self, RouteError> {
        let form = || RouteError::Form { given: text.to_owned() };
        let (prefix, url) = text.split_once('=').ok_or_else(form)?;
        let upstream = || url.parse().map_err(RouteError::Upstream);
        if let Some(name) = prefix.strip_prefix("rule:").filter(|name| !name.contains('/')) {
            if name.is_empty() {
                return Err(form());
            }
            return Ok(Self { requests: RouteMatch::Rule(name.into()), upstream: upstream()? });
        }
        let (host, path) = prefix.split_at(prefix.find('/').ok_or_else(form)?);
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'%');
        if !path.bytes().all(is_plain) || host.contains(['@', '*']) || path.contains("//") {
            return Err(form());
        }
        let host = (!host.is_empty()).then(|| host.to_ascii_lowercase());
        let path = path.strip_suffix('/').unwrap_or(path).to_owned();
        let requests = RouteMatch::Prefix(RoutePrefix { host, path });
        Ok(Self { requests, upstream: upstream()? })
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { given } => write!(
                f,
                "the route {given:?} is not a prefix and a URL; use /prefix=http://host:port, \
                 host.name/prefix=http://host:port or rule:name=http://host:port"
            ),
            Self::Upstream(error) => error.fmt(f),
            Self::NoUpstream => f.write_str("there is no upstream; use http://host:port"),
            Self::TooMany { what, most } => write!(f, "there are more than {most} {what}"),
        }
    }
}

impl StdError for RouteError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> RoutePrefix {
        match format!("{text}=http://a").parse::<Route>().expect("a route").requests {
            RouteMatch::Prefix(prefix) => prefix,
            RouteMatch::Rule(name) => panic!("the rule {name}"),
        }
    }

    #[test]
    fn a_prefix_consists_of_whole_segments_and_may_have_a_host() {
        for (given, host, path, expected) in [
            ("/api", "a", "/api", true),
            ("/api/", "a", "/api", true),
            ("/api", "a", "/api/users", true),
            ("/api", "a", "/apis", false),
            ("/api", "a", "/", false),
            ("/", "a", "/x", true),
            ("shop.example/", "Shop.Example:8080", "/x", true),
            ("shop.example/", "shop.example.evil", "/x", false),
            ("shop.example/", "shop", "/x", false),
            ("shop.example/api", "shop.example", "/x", false),
        ] {
            assert_eq!(
                prefix(given).matches(host.as_bytes(), path),
                expected,
                "{given} {host}{path}"
            );
        }
    }

    #[test]
    fn a_route_that_is_no_prefix_and_url_gets_an_error_with_the_form() {
        for text in [
            "",
            "/api",
            "api=http://a",
            "/a?b=http://a",
            "/a//b=http://a",
            "*/x=http://a",
            "rule:=http://a",
            "rule:search",
        ] {
            let error = text.parse::<Route>().expect_err(text).to_string();
            assert!(error.contains("/prefix=http://host:port"), "{error}");
        }
        let error = "/api=ftp://a".parse::<Route>().expect_err("ftp").to_string();
        assert!(error.contains("ftp://a"), "{error}");
    }

    #[test]
    fn routes_of_one_prefix_share_its_requests_and_all_numbers_are_bounded() {
        let default = vec!["http://d".parse().expect("an upstream")];
        let route = |text: &str| text.parse::<Route>().expect("a route");
        let routes = [
            "/a=http://one",
            "/b=http://b",
            "/a/=http://two",
            "rule:search=http://s",
            "rule:search=http://t",
            "rule:8080/x=http://x",
        ];
        let upstreams = Upstreams::new(default.clone(), routes.map(route).into());
        let upstreams = upstreams.expect("upstreams");
        assert_eq!(
            upstreams.to_string(),
            "http://d; /a/ to http://one, http://two; /b/ to http://b; rule search to http://s, \
             http://t; rule:8080/x/ to http://x"
        );
        assert_eq!(upstreams.rules().collect::<Vec<_>>(), ["search"]);
        let many = (0..=MAX_ROUTES).map(|number| route(&format!("/{number}=http://a"))).collect();
        assert!(matches!(Upstreams::new(default.clone(), many), Err(RouteError::TooMany { .. })));
        let many = vec![route("/a=http://a"); MAX_UPSTREAMS + 1];
        assert!(matches!(Upstreams::new(default, many), Err(RouteError::TooMany { .. })));
        assert_eq!(Upstreams::new(vec![], vec![]), Err(RouteError::NoUpstream));
    }
}
