//! The reader of claims of tokens.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// Reads claims out of tokens. This crate verifies no signatures: an implementation does.
pub trait ClaimReader: fmt::Debug + Send + Sync {
    /// Returns the claim at a path of names, or `None` if the token is not accepted or has no such
    /// claim. Must bound the length of the value.
    fn claim(&self, token: &[u8], path: &[Box<str>]) -> Option<String>;

    /// Returns whether tokens that a client made itself are refused.
    fn is_verified(&self) -> bool;

    /// Describes the tokens that are accepted, in words, without secrets.
    fn description(&self) -> &str;

    /// Returns a hash of the keys and of all settings. Readers with the same hash are equal.
    fn fingerprint(&self) -> [u8; 16];
}
