//! The HTTP/JSON listener: its responses and its access control.

mod access;
mod audit;
mod audit_of_disconnected;
mod check;
mod dashboard;
mod direct;
mod history;
mod hostile;
mod idempotency;
mod openapi;
mod overrides;
mod permits_of_disconnected;
mod reservations;
mod rollout;
mod served;
mod server;
mod standing;
mod sub_requests;
mod subjects;
mod switches;
mod tenants;
mod top;
mod traces;
mod unread_responses;
mod world;
