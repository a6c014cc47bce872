//! One hot limit, charged through several processes with one Redis: leased compared with exact.

pub mod case;
pub mod nodes;
pub mod report;
pub mod round;
