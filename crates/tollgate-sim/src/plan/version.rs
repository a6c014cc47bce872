//! The versions of the policy.

/// A version of the policy.
#[derive(Clone, Debug)]
pub struct Version {
    /// The quotas of the two limits.
    pub quotas: (u64, u64),
    /// The window of the second limit, in seconds.
    pub window: u64,
    /// Whether nodes take units of the second limit in advance.
    pub is_leased: bool,
    /// Whether requests are also charged on a third limit, which refuses none.
    pub has_third_limit: bool,
    /// The shards that own the subjects.
    pub shards: Vec<usize>,
    /// The shards that owned the subjects before.
    pub previous: Option<Vec<usize>>,
    /// The percentage of the subjects that the second shard decides as a store of its own.
    pub percent: Option<u64>,
    /// Why a node refuses to reload this version.
    pub defect: Option<Defect>,
}

/// A reason to refuse a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The file ends in the middle.
    Cut,
    /// A rule names a limit that does not exist.
    NoSuchLimit,
    /// A setting changes that needs a restart.
    NeedsRestart,
}

impl Version {
    /// Creates a version with these quotas, over all of the shards.
    #[must_use]
    pub fn new(quotas: (u64, u64), shards: usize) -> Self {
        Self {
            quotas,
            window: 120,
            is_leased: false,
            has_third_limit: false,
            shards: (0..shards).collect(),
            previous: None,
            percent: None,
            defect: None,
        }
    }
}
