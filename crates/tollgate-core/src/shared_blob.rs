//! Small documents that nodes share beside the limits, in the same stores: each is replaced as a
//! whole or not at all.

use alloc::vec::Vec;
use core::time::Duration;

/// How long reading or replacing a document may take: nobody's decision waits for it.
pub const BLOB_DEADLINE: Duration = Duration::from_secs(1);

/// A document with the version that it is told apart from others by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedBlob {
    /// Its version: empty where there is no document.
    pub version: Vec<u8>,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// Whether a document was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// It was.
    Stored,
    /// Another version was there than the one that was to be replaced.
    Stale,
}
