//! `tollgate serve` as users run it: real processes, real sockets, every listener.

mod access;
mod access_log;
mod calendars;
mod conditions;
mod drain;
mod jwt;
mod keys;
mod plans;
mod policy_reload;
mod recipes;
mod refusals;
mod secrets;
mod start;
mod tenants;
mod traces;
