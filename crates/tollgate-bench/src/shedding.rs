//! What becomes of each priority when a service is asked for three times what it can do, through
//! the proxy: with shedding and without.

pub mod figures;
pub mod load;
pub mod plot;
pub mod upstream;
