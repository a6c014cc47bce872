//! The cases: a limit that the store decides, and a leased limit.

/// A limit that is charged.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name in the report.
    pub name: &'static str,
    /// The limit's name.
    pub limit: &'static str,
    /// The mode of the limit.
    pub mode: &'static str,
    /// Whether the limit admits all charges or half of them.
    pub room: Room,
}

/// Whether a limit admits all charges or half of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// All charges. The quota is far from used up.
    Enough,
    /// Half of the charges.
    Half,
}

/// All cases. Each exact limit is followed by its leased counterpart.
pub const CASES: [Case; 4] = [
    Case { name: "far from the limit", limit: "far-exact", mode: "exact", room: Room::Enough },
    Case { name: "", limit: "far-leased", mode: "leased", room: Room::Enough },
    Case { name: "half is refused", limit: "near-exact", mode: "exact", room: Room::Half },
    Case { name: "", limit: "near-leased", mode: "leased", room: Room::Half },
];

impl Case {
    /// Returns the quota of the limit, for `scale` charges in a round.
    #[must_use]
    pub const fn quota(&self, scale: u64) -> u64 {
        match self.room {
            Room::Enough => 1_000_000_000,
            Room::Half => scale / 2,
        }
    }
}
