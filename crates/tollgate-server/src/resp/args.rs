//! The words of a command, however they were sent.

use smallvec::SmallVec;

/// Words of one command, at most.
pub const MAX_ARGS: usize = 64;

/// The words of a command, the first of which names it. None at all ask for nothing.
pub(super) type Args<'a> = SmallVec<[&'a [u8]; 8]>;
