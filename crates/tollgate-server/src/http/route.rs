//! What can be asked, and where.

use axum::http::Method;

use crate::dashboard::{self, AssetLookup};

/// What can be asked.
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
    Audit,
    Live,
    Ready,
    SharedBlob,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Everybody: it tells nothing of anybody.
    Public,
    /// Who knows one of the listener's tokens.
    Caller,
    /// Who knows one of an administrator's.
    Admin,
    /// A proxy, in its client's name: it shows itself in a field of its own.
    Proxy,
}

/// What a request brings with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// Nothing; a body is not read.
    Nothing,
    /// A body that says it is JSON.
    Json,
    /// A body that says it is JSON, with an access log in it.
    Log,
    /// A body of JSON, whatever it says.
    Bytes,
}

/// Why a request leads nowhere.
#[derive(Clone, Copy, Debug)]
pub(super) enum RouteError {
    /// There is no such path.
    UnknownPath,
    /// The path is asked with these methods only.
    UnknownMethod(&'static [(Method, Route)]),
}

/// Each path with its methods. The one that is asked most stands first.
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
    ("/v1/audit", &[(Method::GET, Route::Audit)]),
    ("/healthz", &[(Method::GET, Route::Live)]),
    ("/readyz", &[(Method::GET, Route::Ready)]),
    // The path of envoyproxy/ratelimit's probe.
    ("/healthcheck", &[(Method::GET, Route::Ready)]),
    ("/openapi.json", &[(Method::GET, Route::SharedBlob)]),
];

/// What the dashboard's files are asked with.
static DASHBOARD: &[(Method, Route)] = &[(Method::GET, Route::Dashboard(AssetLookup::Missing))];

impl Route {
    /// Where `method` on `path` leads. `HEAD` asks for what `GET` answers, without its body.
    pub(super) fn find(method: &Method, path: &str) -> Result<Self, RouteError> {
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

    /// Who may ask.
    pub(super) const fn audience(self) -> Audience {
        match self {
            Self::Live | Self::Ready | Self::SharedBlob | Self::Dashboard(_) => Audience::Public,
            Self::Authorize => Audience::Proxy,
            Self::Forget
            | Self::Status
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

    /// Whether it decides on requests.
    pub(super) const fn decides(self) -> bool {
        matches!(
            self,
            Self::Check | Self::CheckBatch | Self::Reserve | Self::Authorize | Self::Descriptors
        )
    }

    /// Whether programs ask it in the course of their requests.
    pub(super) const fn is_traffic(self) -> bool {
        matches!(self.audience(), Audience::Caller | Audience::Proxy)
    }

    /// Whether supervisors and balancers ask it, by whatever name they have for the node.
    pub(super) const fn is_probe(self) -> bool {
        matches!(self, Self::Live | Self::Ready)
    }

    /// What a request brings with it.
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
            | Self::SetOverride => BodyKind::Json,
            Self::Simulate => BodyKind::Log,
            Self::Descriptors => BodyKind::Bytes,
            Self::LimitStatus
            | Self::Forget
            | Self::Authorize
            | Self::Status
            | Self::Metrics
            | Self::Policy
            | Self::Reload
            | Self::Top
            | Self::Subjects
            | Self::Dashboard(_)
            | Self::Overrides
            | Self::RemoveOverride
            | Self::Audit
            | Self::Live
            | Self::Ready
            | Self::SharedBlob => BodyKind::Nothing,
        }
    }
}
