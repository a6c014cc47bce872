//! One hot limit, charged through several processes over one Redis: leased beside exact.

pub mod case;
pub mod nodes;
pub mod report;
pub mod round;
