//! The server's processor time for a decision, through each listener, compared with a peer.

pub mod case;
pub mod contender;
pub mod instructions;
pub mod load;
pub mod report;
pub mod upstream;
pub mod wire;
