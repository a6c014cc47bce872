//! The HTTP/JSON listener: charges, peeks, status and refunds for any program that uses HTTP.

mod answer;
mod app;
mod audit;
mod audit_log;
mod auth;
mod authorize;
mod body;
mod callbacks;
mod check;
mod direct;
mod health;
mod history;
mod hosts;
mod idempotency;
mod json;
mod limit_status;
mod listener;
mod metrics;
mod openapi;
mod options;
mod override_target;
mod overrides;
mod percentage;
mod policy;
mod prefer;
mod problem;
mod query;
mod redaction;
mod refund;
mod reload;
mod reserve;
mod respond;
mod rollout;
mod route;
mod routes;
mod simulate;
mod status;
mod subjects;
mod tenants;
mod top;
mod wire;

pub use crate::history::{
    HISTORY_LIMITS, HISTORY_PERIOD, HISTORY_SAMPLES, History, HistoryCounts, HistoryReading,
};
pub use audit_log::MAX_AUDITED;
pub use body::MAX_BODY_BYTES;
pub use callbacks::{
    Metrics, Reload, Simulate, Status, Subjects, SubjectsError, SubjectsPage, SubjectsRequest,
};
pub use hosts::AllowedHosts;
pub use idempotency::{
    MAX_KEY_BYTES, MAX_REMEMBERED, MAX_REMEMBERED_BYTES, MAX_REMEMBERED_PER_CALLER, REMEMBERED_FOR,
};
pub use listener::HttpListener;
pub use openapi::openapi;
pub use options::{HttpOptions, Readiness};
pub use percentage::Percentage;
pub use routes::router;
pub use simulate::MAX_SIMULATION_BYTES;
pub use tenants::{MAX_IMPORT_BYTES, MAX_TENANTS_PAGE};
