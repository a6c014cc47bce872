//! Small documents that nodes share in the same stores as the limits. Each is replaced as a whole
//! or not at all.

use alloc::vec::Vec;
use core::time::Duration;

/// The longest time for reading or replacing a document. No decision waits for it.
pub const BLOB_DEADLINE: Duration = Duration::from_secs(1);

/// A document with its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedBlob {
    /// The version; empty if there is no document.
    pub version: Vec<u8>,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Whether a document was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// The document was replaced.
    Stored,
    /// The stored version was not the one to be replaced.
    Stale,
}
