//! The listeners of `tollgate serve`: configuration, opening and reloading.

pub(crate) mod listeners;
pub(crate) mod open;
pub(crate) mod reload;
pub(crate) mod simulate_api;
pub(crate) mod status;
pub(crate) mod subjects;
