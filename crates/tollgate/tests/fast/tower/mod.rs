//! The layer in front of a service, on the memory store and on stores with faults.

mod by_status;
mod layer;
mod leases;
mod metered;
mod on_completion;
mod queue;
mod refusals;
mod shedding;
mod world;
