//! The versions of the policy in a world.

/// A version of the policy, from which the policy file of a node is generated.
#[derive(Clone, Debug)]
pub struct Version {
    /// The quotas of the first and of the second limit.
    pub quotas: (u64, u64),
    /// The window of the second limit, in seconds.
    pub window: u64,
    /// Whether the second limit is leased: nodes take its units in advance.
    pub is_leased: bool,
    /// Whether requests are also charged on a third limit, which never refuses.
    pub has_third_limit: bool,
    /// The indexes of the shards among which subjects are divided.
    pub shards: Vec<usize>,
    /// During a rebalance, the indexes of the shards among which subjects were divided before.
    pub previous: Option<Vec<usize>>,
    /// In a rollout, the percentage of subjects that have moved to the second store. The first
    /// shard is the first store, and the second shard is the second store.
    pub percent: Option<u64>,
    /// The number of nodes that the policy states. `None` if it is the number of nodes of the world.
    pub nodes: Option<usize>,
    /// The reason why nodes must refuse to reload this version. `None` if they must accept it.
    pub defect: Option<Defect>,
}

/// A reason why a node must refuse a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The file is truncated.
    Cut,
    /// A rule refers to a limit that does not exist.
    NoSuchLimit,
    /// The file changes a setting that only takes effect after a restart.
    NeedsRestart,
    /// The file states another number of nodes, which only takes effect after a restart. Nodes may
    /// start with this file.
    OtherNodes,
}

impl Version {
    /// Creates a version with these quotas. It uses all `shards` shards, and has no rebalance,
    /// rollout or defect.
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
            nodes: None,
            defect: None,
        }
    }
}
