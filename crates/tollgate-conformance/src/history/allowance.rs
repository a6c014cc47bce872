//! The deviations from exactness that a mode of operation allows.

/// The units by which a history may deviate from exactness. They are the documented bounds of the
/// mode of operation, for example of the fallback.
///
/// All numbers are 0 by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Units that the store may have counted and lost in each window of a limit and subject. They
    /// are charges that a promoted replica had not received.
    pub lost: u64,
    /// Units by which a settlement may exceed a limit.
    pub overdraft: u64,
    /// Units of a limit and subject that concurrent calls on several subjects may have charged
    /// temporarily. Such a call refunds the units when it is refused. Until then, other calls see
    /// the units as used.
    pub held: u64,
    /// Whether a call on several limits of one subject charges them one after the other, as in
    /// memcached. Such a call holds units in the same way.
    pub step_by_step: bool,
    /// Units of a limit and subject that a refused call charged temporarily and could not refund.
    pub unrefunded: u64,
    /// Units that the fallback may admit by itself in each window of a limit and subject, in
    /// addition to the store.
    pub fallback: u64,
    /// Whether nodes charge the store later for units that their fallback admitted while the store
    /// could not be reached. The store then counts these units from some later time on, in a window
    /// that is open until the reset that the fallback reported.
    pub charged_later: bool,
    /// Units of a limit and subject that nodes may have leased and not used, for a
    /// [leased](tollgate_core::LimitMode::Leased) limit. Other nodes see these units as used. For
    /// other limits, and if this number is 0, every reported number is exact.
    pub leased: u64,
}
