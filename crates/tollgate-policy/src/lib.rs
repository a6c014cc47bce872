//! The policy file: parses YAML to a checked [`Policy`](tollgate_core::Policy), or returns all
//! mistakes with their positions.
//!
//! - [`load()`] and [`parse`] read a file. [`PolicyErrors`] lists all its mistakes at once.
//! - [`explain()`] describes a policy file in words, and [`trace()`] shows which rules and limits
//!   apply to a request.
//! - [`schema()`] is the JSON schema of the file, for editors.
//! - [`import`] generates a file from the configuration of other rate limiters.
//!
//! ```
//! let text = "
//! subjects: { address: { client_address: {} } }
//! limits: { core: { quota: 60, window: 1h, per: address } }
//! rules: [{ limits: core }]
//! ";
//! let loaded = tollgate_policy::parse("shop.yaml", text)?;
//! let said = tollgate_policy::explain(&loaded).to_string();
//! assert!(said.contains("60 requests per 1h for each address"));
//!
//! let mistakes = tollgate_policy::parse("shop.yaml", &text.replace("1h", "1 hour")).unwrap_err();
//! let finding = &mistakes.findings()[0];
//! assert_eq!((finding.line(), finding.column()), (3, 38));
//! # Ok::<(), tollgate_policy::PolicyErrors>(())
//! ```
//!
//! A file is parsed in three steps, each in its own module. The first step creates a tree, in which
//! every node has its position. The second reads the keys and values. The third resolves them to
//! the policy. The keys are declared once. The reader, the schema and the reference are generated
//! from that declaration.

mod decode;
mod explain;
mod files;
mod finding;
mod format;
pub mod import;
mod include;
mod load;
mod network_file;
mod quote;
mod raw;
mod redact;
mod report;
mod resolve;
mod schema;
mod settings;
mod span;
mod suggest;
mod token;
mod trace;
mod tree;

pub use explain::{Explanation, explain};
pub use files::{MAX_FILE_BYTES, MAX_NETWORKS};
pub use finding::{Finding, PolicyErrors};
pub use format::format;
pub use load::{
    LoadError, LoadedPolicy, load, load_bytes, named_files, parse, parse_relative_to, read,
};
pub use network_file::{MAX_NETWORK_FILE_BYTES, NetworkFile};
pub use schema::schema;
pub use settings::{
    DEFAULT_SAMPLE, DashboardMode, DashboardSettings, DecisionClock, DenyCacheMode, KeySource,
    ListenerSettings, ListenerTlsFiles, MIN_REDIS_DEADLINE, MemcachedLayout, MemcachedSettings,
    MemoryBounds, MigrationStoreSettings, OnMove, ParentSampling, PreviousShardMap, ReadFrom,
    RedisSettings, RolloutSettings, SentinelAccess, ServeSettings, Settings, ShadowSettings,
    ShardSettings, StepForm, StoreSettings, TlsFiles, TlsIdentity, Topology, TracesSettings,
    Transport,
};
pub use suggest::suggest;
pub use trace::{RuleOutcome, RuleTrace, Trace, trace};
