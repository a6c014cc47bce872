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
    /// Whether requests are also charged on a third limit, which never refuses.
    pub has_third_limit: bool,
    /// The shards that own the subjects.
    pub shards: Vec<usize>,
    /// The shards that owned the subjects before the rebalance.
    pub previous: Option<Vec<usize>>,
    /// The percentage of the subjects that have moved to the second store of a rollout. The second
    /// shard is that store.
    pub percent: Option<u64>,
    /// The reason why a node must refuse to reload this version, if it must.
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
