//! Tracing.

/// Of how many of a hundred traces that begin here spans are sent, unless the file says otherwise.
pub const DEFAULT_SAMPLE: u8 = 1;

/// Where spans of requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesSettings {
    /// The collector; where it is not named, the environment names it.
    pub endpoint: Option<Box<str>>,
    /// Of how many traces in a hundred.
    pub sample: u8,
    /// Whether a caller's word counts.
    pub parents: Parents,
}

/// Whether a caller's word counts that its trace is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parents {
    /// It does.
    #[default]
    Follow,
    /// It does not.
    Ignore,
}
