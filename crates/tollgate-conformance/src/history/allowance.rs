//! The deviations from exactness that a mode of operation allows, for example the fallback.

/// The units by which a history may deviate from exactness. Each number is the documented bound of
/// a mode of operation, for example of the fallback.
///
/// All numbers are 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Units that the store may have counted and lost in each window of a limit and subject:
    /// charges that a promoted replica had not received.
    pub lost: u64,
    /// Units by which a settlement may exceed a limit.
    pub overdraft: u64,
    /// Units of a limit and subject that concurrent calls on several subjects may have charged
    /// temporarily. Such a call refunds the units when it is refused. Until then, other calls see
    /// the units as used.
    pub held: u64,
    /// Whether a call on several limits of one subject charges the limits one after the other, as
    /// in memcached. Such a call holds units temporarily, like a call on several subjects: see
    /// [`held`](Self::held).
    pub step_by_step: bool,
    /// Units of a limit and subject that a refused call charged temporarily and could not refund.
    pub unrefunded: u64,
    /// Units that the fallback may admit by itself in each window of a limit and subject, in
    /// addition to the store.
    pub fallback: u64,
    /// Whether nodes later charge the store for units that their fallback admitted while the store
    /// could not be reached. From the time of such a charge on, the store counts these units in the
    /// window that the fallback reported.
    pub charged_later: bool,
    /// Units of a limit and subject that nodes may have leased without using them yet, for a
    /// [leased](tollgate_core::LimitMode::Leased) limit. Other nodes report these units as used.
    /// For other limits, and if this number is 0, every reported number is exact.
    pub leased: u64,
}
