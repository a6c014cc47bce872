//! Comparison of a leased limit with an exact limit. Several nodes with one Redis charge one
//! subject.

pub mod case;
pub mod nodes;
pub mod report;
pub mod round;
