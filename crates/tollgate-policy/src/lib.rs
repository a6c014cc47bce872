//! The policy file: YAML as a person writes it in, a checked [`Policy`](tollgate_core::Policy) or
//! every mistake with its place out.
//!
//! - [`load()`] and [`parse`] read a file; [`PolicyErrors`] shows all that is wrong with it at once.
//! - [`explain()`] says a policy file in words, [`trace()`] what one request meets in it.
//! - [`schema()`] is the JSON schema of the file, for editors.
//! - [`import`] writes a file from the configuration of other rate limiters.
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
//! A file goes through three forms, each in a module of its own: a tree in which everything knows
//! its place, the raw keys, and the resolved policy. The keys are declared once; reader,
//! schema and reference are made of that one declaration.

mod decode;
mod explain;
mod finding;
pub mod import;
mod load;
mod raw;
mod redact;
mod report;
mod resolve;
mod schema;
mod settings;
mod span;
mod suggest;
mod trace;
mod tree;

pub use explain::{Explanation, explain};
pub use finding::{Finding, PolicyErrors};
pub use load::{LoadError, LoadedPolicy, MAX_FILE_BYTES, load, load_bytes, parse, read};
pub use schema::schema;
pub use settings::{
    DEFAULT_SAMPLE, DashboardMode, DashboardSettings, DecisionClock, DenyCacheMode, KeySource,
    ListenerSettings, ListenerTlsFiles, MemcachedLayout, MemcachedSettings, MemoryBounds,
    MigrationStoreSettings, OnMove, ParentSampling, PreviousShardMap, ReadFrom, RedisSettings,
    RolloutSettings, SentinelAccess, ServeSettings, Settings, ShadowSettings, ShardSettings,
    StepForm, StoreSettings, TlsFiles, TlsIdentity, Topology, TracesSettings, Transport,
};
pub use suggest::suggest;
pub use trace::{RuleOutcome, RuleTrace, Trace, trace};
