//! The layer in front of a service, on the memory store and on stores with troubles.

mod layer;
mod leases;
mod metered;
mod on_completion;
mod on_failure;
mod queue;
mod shedding;
#[expect(dead_code, reason = "the wrappers meet more troubles than the layer does")]
#[path = "../wrappers/faulty.rs"]
mod store_with_troubles;
mod world;
