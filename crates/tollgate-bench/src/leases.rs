//! Compares a leased limit with an exact limit. Several nodes that share one Redis server charge
//! one subject.

pub mod case;
pub mod nodes;
pub mod report;
pub mod round;
