//! The results for requests of each priority, with load shedding and without. The proxy forwards
//! three times as many requests as the capacity of the service behind it.

pub mod figures;
pub mod load;
pub mod plot;
pub mod upstream;
