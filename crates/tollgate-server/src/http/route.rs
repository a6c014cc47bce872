//! The routes of the listener: paths, methods and audiences.

use axum::http::Method;

use crate::dashboard::{self, AssetLookup};

/// The path of one tenant, as it is written in the list of routes.
pub(super) const TENANT_PATH: &str = "/v1/tenants/{tenant}";

/// The start of the path of every single tenant.
pub(super) const TENANT_PREFIX: &str = "/v1/tenants/";

/// An operation of the listener, which is selected by a path and a method.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    Check,
    CheckBatch,
    Peek,
    Refund,
    Reserve,
    Extend,
    Settle,
    Release,
    LimitStatus,
    Forget,
    Authorize,
    Descriptors,
    Status,
    History,
    Metrics,
    Reload,
    Rollout,
    Top,
    Subjects,
    Policy,
    Simulate,
    Dashboard(AssetLookup),
    Overrides,
    SetOverride,
    RemoveOverride,
    Tenants,
    ImportTenants,
    Tenant,
    SetTenant,
    RemoveTenant,
    Audit,
    Live,
    Ready,
    SharedBlob,
}

/// The callers that may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Anyone. The route returns no data about clients.
    Public,
    /// Callers with one of the listener's tokens.
    Caller,
    /// Callers with one of the administrators' tokens.
    Admin,
    /// A proxy that asks on behalf of its client. The proxy authenticates with a header field of
    /// its own.
    Proxy,
}

/// The body that a route expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// No body. If the request has a body, the body is not read.
    Nothing,
    /// A body with the media type JSON.
    Json,
    /// A body with the media type JSON that contains an access log.
    Log,
    /// A JSON body. The media type is not checked.
    Bytes,
    /// Rows of tenants in CSV or JSON lines, read as they arrive.
    Rows,
}

/// The reason why a request has no route.
#[derive(Clone, Copy, Debug)]
pub(super) enum RouteError {
    /// The path does not exist.
    UnknownPath,
    /// The path exists, but only with these methods.
    UnknownMethod(&'static [(Method, Route)]),
}

impl RouteError {
    /// Returns whether proxies use the path on behalf of their clients, as [`Route::is_of_proxies`]
    /// returns for a route.
    pub(super) fn is_of_proxies(self) -> bool {
        match self {
            Self::UnknownPath => false,
            Self::UnknownMethod(known) => known.iter().all(|(_, route)| route.is_of_proxies()),
        }
    }
}

/// The paths with their methods. The most frequent path comes first.
pub(super) static ROUTES: &[(&str, &[(Method, Route)])] = &[
    ("/v1/check", &[(Method::POST, Route::Check)]),
    ("/v1/check/batch", &[(Method::POST, Route::CheckBatch)]),
    ("/v1/authorize", &[(Method::GET, Route::Authorize), (Method::POST, Route::Authorize)]),
    ("/json", &[(Method::POST, Route::Descriptors)]),
    ("/v1/peek", &[(Method::POST, Route::Peek)]),
    ("/v1/refund", &[(Method::POST, Route::Refund)]),
    ("/v1/reserve", &[(Method::POST, Route::Reserve)]),
    ("/v1/extend", &[(Method::POST, Route::Extend)]),
    ("/v1/settle", &[(Method::POST, Route::Settle)]),
    ("/v1/release", &[(Method::POST, Route::Release)]),
    ("/v1/standing", &[(Method::GET, Route::LimitStatus), (Method::DELETE, Route::Forget)]),
    ("/metrics", &[(Method::GET, Route::Metrics)]),
    ("/v1/status", &[(Method::GET, Route::Status)]),
    ("/v1/history", &[(Method::GET, Route::History)]),
    ("/v1/policy", &[(Method::GET, Route::Policy)]),
    ("/v1/policy/reload", &[(Method::POST, Route::Reload)]),
    ("/v1/rollout", &[(Method::PUT, Route::Rollout)]),
    ("/v1/top", &[(Method::GET, Route::Top)]),
    ("/v1/subjects", &[(Method::GET, Route::Subjects)]),
    ("/v1/simulate", &[(Method::POST, Route::Simulate)]),
    (
        "/v1/overrides",
        &[
            (Method::GET, Route::Overrides),
            (Method::PUT, Route::SetOverride),
            (Method::DELETE, Route::RemoveOverride),
        ],
    ),
    ("/v1/tenants", &[(Method::GET, Route::Tenants), (Method::POST, Route::ImportTenants)]),
    (
        TENANT_PATH,
        &[
            (Method::GET, Route::Tenant),
            (Method::PUT, Route::SetTenant),
            (Method::DELETE, Route::RemoveTenant),
        ],
    ),
    ("/v1/audit", &[(Method::GET, Route::Audit)]),
    ("/healthz", &[(Method::GET, Route::Live)]),
    ("/readyz", &[(Method::GET, Route::Ready)]),
    // envoyproxy/ratelimit has its health probe at this path.
    ("/healthcheck", &[(Method::GET, Route::Ready)]),
    ("/openapi.json", &[(Method::GET, Route::SharedBlob)]),
];

/// The methods of the dashboard's files.
static DASHBOARD: &[(Method, Route)] = &[(Method::GET, Route::Dashboard(AssetLookup::Missing))];

impl Route {
    /// Returns the route of `method` and `path`. `HEAD` uses the route of `GET`; its response has
    /// no body.
    pub(super) fn find(method: &Method, path: &str) -> Result<Self, RouteError> {
        let is_tenant = path.strip_prefix(TENANT_PREFIX).is_some_and(|name| !name.is_empty());
        let path = if is_tenant { TENANT_PATH } else { path };
        let known = ROUTES.iter().find(|(known, _)| *known == path);
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let Some((_, methods)) = known else {
            let found = dashboard::find(path).ok_or(RouteError::UnknownPath)?;
            let is_get = *method == Method::GET;
            return is_get
                .then_some(Self::Dashboard(found))
                .ok_or(RouteError::UnknownMethod(DASHBOARD));
        };
        let route = methods.iter().find(|(known, _)| known == method);
        route.map(|(_, route)| *route).ok_or(RouteError::UnknownMethod(methods))
    }

    /// Returns the callers that may use the route.
    pub(super) const fn audience(self) -> Audience {
        match self {
            Self::Live | Self::Ready | Self::SharedBlob | Self::Dashboard(_) => Audience::Public,
            Self::Authorize => Audience::Proxy,
            Self::Forget
            | Self::Status
            | Self::History
            | Self::Metrics
            | Self::Policy
            | Self::Reload
            | Self::Rollout
            | Self::Simulate
            | Self::Top
            | Self::Subjects
            | Self::Overrides
            | Self::SetOverride
            | Self::RemoveOverride
            | Self::Tenants
            | Self::ImportTenants
            | Self::Tenant
            | Self::SetTenant
            | Self::RemoveTenant
            | Self::Audit => Audience::Admin,
            Self::Check
            | Self::CheckBatch
            | Self::Peek
            | Self::Refund
            | Self::Reserve
            | Self::Extend
            | Self::Settle
            | Self::Release
            | Self::LimitStatus
            | Self::Descriptors => Audience::Caller,
        }
    }

    /// Returns whether programs, and not administrators, call the route.
    pub(super) const fn is_traffic(self) -> bool {
        matches!(self.audience(), Audience::Caller | Audience::Proxy)
    }

    /// Returns whether the route is for supervisors and load balancers, which may use any host name
    /// for the node.
    pub(super) const fn is_probe(self) -> bool {
        matches!(self, Self::Live | Self::Ready)
    }

    /// Returns whether proxies use the route on behalf of their clients. The requests of a proxy
    /// have the host of its client's request, or a name from the configuration of the proxy.
    pub(super) const fn is_of_proxies(self) -> bool {
        matches!(self, Self::Authorize | Self::Refund)
    }

    /// Returns the body that the route expects.
    pub(super) const fn body_kind(self) -> BodyKind {
        match self {
            Self::Check
            | Self::CheckBatch
            | Self::Peek
            | Self::Refund
            | Self::Reserve
            | Self::Extend
            | Self::Settle
            | Self::Release
            | Self::Rollout
            | Self::SetOverride
            | Self::SetTenant => BodyKind::Json,
            Self::Simulate => BodyKind::Log,
            Self::ImportTenants => BodyKind::Rows,
            Self::Descriptors => BodyKind::Bytes,
            Self::LimitStatus
            | Self::Forget
            | Self::Authorize
            | Self::Status
            | Self::History
            | Self::Metrics
            | Self::Policy
            | Self::Reload
            | Self::Top
            | Self::Subjects
            | Self::Dashboard(_)
            | Self::Overrides
            | Self::RemoveOverride
            | Self::Tenants
            | Self::Tenant
            | Self::RemoveTenant
            | Self::Audit
            | Self::Live
            | Self::Ready
            | Self::SharedBlob => BodyKind::Nothing,
        }
    }
}
