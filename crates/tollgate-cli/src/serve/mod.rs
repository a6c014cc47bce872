//! The doors of `tollgate serve`: which there are, how they are opened, what is read anew.

pub(crate) mod doors;
pub(crate) mod open;
pub(crate) mod reload;
pub(crate) mod status;
pub(crate) mod subjects;
pub(crate) mod what_if;
