//! The listeners, called over real sockets by the clients of these tests.

mod cut_off;
mod grpc;
mod http;
mod resp;
