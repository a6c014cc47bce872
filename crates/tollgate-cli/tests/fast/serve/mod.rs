//! `tollgate serve` as users run it: real processes, real sockets, every listener.

mod access;
mod access_log;
mod calendars;
mod conditions;
mod drain;
mod keys;
mod plans;
mod policy_reload;
mod refusals;
mod secrets;
mod start;
mod traces;
