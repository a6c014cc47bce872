//! The gRPC listener, called through a socket by a client.

mod counting;
mod descriptors;
mod failure;
mod hostile;
mod json;
mod metadata;
mod metrics;
mod quotas;
mod shares;
mod traces;
mod transport;
mod world;
