//! Tests of the layer in front of a service, with the memory store and with stores that have
//! faults.

mod by_status;
mod layer;
mod leases;
mod metered;
mod on_completion;
mod queue;
mod refusals;
mod shedding;
mod without_layer;
mod world;
