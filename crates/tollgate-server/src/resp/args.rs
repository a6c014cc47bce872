//! The arguments of a command, in either form of the protocol.

use smallvec::SmallVec;

/// The most arguments of one command, including its name.
pub const MAX_ARGS: usize = 64;

/// The arguments of a command. The first one is its name. An empty list requests nothing.
pub(super) type Args<'a> = SmallVec<[&'a [u8]; 8]>;
