//! The cases of the benchmark: limits that the store decides, and leased limits.

/// A limit that the benchmark charges.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the case in the report. Empty for a leased limit, because its row follows the
    /// row of the exact limit.
    pub name: &'static str,
    /// The limit's name.
    pub limit: &'static str,
    /// The value of `mode` in the definition of the limit: `exact` or `leased`.
    pub mode: &'static str,
    /// The share of the charges that the limit admits.
    pub room: Room,
}

/// The share of the charges that a limit admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// All charges are admitted. The quota is far larger than the number of charges.
    Ample,
    /// Half of the charges are admitted.
    Half,
}

/// All cases. The case of an exact limit is followed by the same case with a leased limit.
pub const CASES: [Case; 4] = [
    Case { name: "far from the limit", limit: "far-exact", mode: "exact", room: Room::Ample },
    Case { name: "", limit: "far-leased", mode: "leased", room: Room::Ample },
    Case { name: "half is refused", limit: "near-exact", mode: "exact", room: Room::Half },
    Case { name: "", limit: "near-leased", mode: "leased", room: Room::Half },
];

impl Case {
    /// Returns the quota of the limit, if a round makes `scale` charges.
    #[must_use]
    pub const fn quota(&self, scale: u64) -> u64 {
        match self.room {
            Room::Ample => 1_000_000_000,
            Room::Half => scale / 2,
        }
    }
}
