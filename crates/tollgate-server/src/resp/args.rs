//! The arguments of a command, in both forms of the protocol: arrays and inline commands.

use smallvec::SmallVec;

/// The most arguments of one command, including its name.
pub const MAX_ARGS: usize = 64;

/// The arguments of a command. The first argument is the name of the command. An empty list is no
/// command and gets no reply.
pub(super) type Args<'a> = SmallVec<[&'a [u8]; 8]>;
