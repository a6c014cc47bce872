//! The results of each priority when a service gets three times its capacity of requests through
//! the proxy: with load shedding and without.

pub mod figures;
pub mod load;
pub mod plot;
pub mod upstream;
