//! Shared parts of the commands' tests: processes of the binary, clients of its listeners, services
//! behind it.

#![allow(dead_code, reason = "each binary of tests uses a part of it")]

pub(crate) mod api;
pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod collector;
pub(crate) mod grpc;
pub(crate) mod listeners;
pub(crate) mod node;
pub(crate) mod world;
