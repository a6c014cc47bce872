//! Compares the processor time of a decision through each listener with the processor time of a
//! peer.

pub mod case;
pub mod contender;
pub mod instructions;
pub mod load;
pub mod report;
pub mod upstream;
pub mod wire;
