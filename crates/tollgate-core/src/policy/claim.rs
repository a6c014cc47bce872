//! The interface for reading the claims of tokens, such as JSON web tokens.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// Reads claims out of tokens. This crate contains no implementation. An implementation can verify
/// the signatures of the tokens.
pub trait ClaimReader: fmt::Debug + Send + Sync {
    /// Returns the claim to which the member names in `path` lead, the outermost first. Returns
    /// `None` if the token is not accepted or has no such claim. An implementation must bound the
    /// length of the returned text.
    fn claim(&self, token: &[u8], path: &[Box<str>]) -> Option<String>;

    /// Returns whether the reader verifies tokens. A reader that verifies tokens does not accept a
    /// token that a client made itself.
    fn is_verified(&self) -> bool;

    /// Returns a description of the accepted tokens, without secrets.
    fn description(&self) -> &str;

    /// Returns a hash of the keys and of all settings. Two readers with the same hash return the
    /// same claims.
    fn fingerprint(&self) -> [u8; 16];
}
