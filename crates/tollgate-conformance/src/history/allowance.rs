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
    /// Units of a limit and subject that calls on several subjects may hold at one time while they
    /// are under way, and give back because they are refused: others see them used.
    pub held: u64,
    /// Units of a limit and subject that were held so and could not be given back.
    pub unrefunded: u64,
    /// Units that what stands in for the store may admit by itself, in each window of a limit and
    /// subject, beside what the store admits.
    pub fallback: u64,
    /// Units of a limit and subject that nodes may have taken in advance and not used, where the limit
    /// is [leased](tollgate_core::LimitMode::Leased): the other nodes see them used. Of a limit that is
    /// not, and where this is none, every number is exact.
    pub leased: u64,
}
