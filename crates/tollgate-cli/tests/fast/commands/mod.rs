//! Tests of the commands as users run them: real processes, real sockets.

mod check;
mod demo;
mod fmt;
mod import;
mod proxy;
mod proxy_tls;
mod routes;
mod shedding;
