//! Small documents that nodes share, such as the table of tenants or the overrides. They are in the
//! same store as the counters. A document is replaced as a whole or not at all.

use alloc::vec::Vec;
use core::time::Duration;

/// The longest time for reading or replacing a document. No decision waits for a document.
pub const BLOB_DEADLINE: Duration = Duration::from_secs(1);

/// A document with its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedBlob {
    /// The version of the document, which is empty if there is no document.
    pub version: Vec<u8>,
    /// The bytes of the document.
    pub bytes: Vec<u8>,
}

/// The result of a compare-and-set operation: whether a document was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasOutcome {
    /// The document was replaced.
    Stored,
    /// The document was not replaced, because its stored version was not the expected one.
    Stale,
}
