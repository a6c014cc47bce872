//! What a mode may weaken.

/// By how much a history may miss exactness, in units: the stated bound of the mode in force.
///
/// Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Units that the store may have counted and lost, in each window of a limit and subject: what
    /// a replica that took over had not heard of.
    pub lost: u64,
    /// Units by which a settlement may pass a limit.
    pub overdraft: u64,
    /// Units that what stands in for the store may admit by itself, in each window of a limit and
    /// subject, beside what the store admits.
    pub fallback: u64,
}
