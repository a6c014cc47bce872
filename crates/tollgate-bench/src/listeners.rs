//! What a decision costs the server that is asked for it, through each listener and beside its peer.

pub mod case;
pub mod contender;
pub mod instructions;
pub mod load;
pub mod report;
pub mod upstream;
pub mod wire;
