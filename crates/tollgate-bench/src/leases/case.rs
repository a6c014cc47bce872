//! What is compared: a limit that the store decides, and one of which nodes take parts in advance.

/// A limit that is charged.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it is called in the report.
    pub name: &'static str,
    /// The limit's name.
    pub limit: &'static str,
    /// Its mode.
    pub mode: &'static str,
    /// How much of what is asked it admits.
    pub room: Room,
}

/// How much of what is asked a limit admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// All of it, many times over.
    Enough,
    /// Half of it.
    Half,
}

/// Every case: the exact one before the leased one.
pub const CASES: [Case; 4] = [
    Case { name: "far from the limit", limit: "far-exact", mode: "exact", room: Room::Enough },
    Case { name: "", limit: "far-leased", mode: "leased", room: Room::Enough },
    Case { name: "half is refused", limit: "near-exact", mode: "exact", room: Room::Half },
    Case { name: "", limit: "near-leased", mode: "leased", room: Room::Half },
];

impl Case {
    /// The units of its limit, where `scale` charges are made in a round.
    #[must_use]
    pub const fn quota(&self, scale: u64) -> u64 {
        match self.room {
            Room::Enough => 1_000_000_000,
            Room::Half => scale / 2,
        }
    }
}
