//! Compares the results for requests of each priority with and without load shedding. The proxy
//! receives three times as many requests as the service behind it can serve.

pub mod figures;
pub mod load;
pub mod plot;
pub mod upstream;
