//! The gRPC listener, asked through a socket by a client of its own.

mod counting;
mod descriptors;
mod failure;
mod hostile;
mod json;
mod metadata;
mod quotas;
mod shares;
mod traces;
mod transport;
mod world;
