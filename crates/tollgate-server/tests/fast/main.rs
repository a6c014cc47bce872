//! The listeners, asked over real sockets by clients of these tests.

mod grpc;
mod http;
mod resp;
