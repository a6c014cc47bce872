//! The listeners of `tollgate serve`: which there are, how they are opened, what is read anew.

pub(crate) mod listeners;
pub(crate) mod open;
pub(crate) mod reload;
pub(crate) mod simulate_api;
pub(crate) mod status;
pub(crate) mod subjects;
