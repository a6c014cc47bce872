//! The policy file: YAML as a person writes it in, a checked [`Policy`](tollgate_core::Policy) or
//! every mistake with its place out.
//!
//! - [`load()`] and [`parse`] read a file; [`Mistakes`] shows all that is wrong with it at once.
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
//! # Ok::<(), tollgate_policy::Mistakes>(())
//! ```
//!
//! A file goes through three forms, each in a module of its own: a tree in which everything knows
//! its place, the keys as written, and the policy as meant. The keys are declared once; reader,
//! schema and reference are made of that one declaration.

mod descriptor_words;
mod explain;
mod finding;
pub mod import;
mod load;
mod masked;
mod meant;
mod memcached_words;
mod nearest;
mod read;
mod report;
mod schema;
mod settings;
mod shed_words;
mod span;
mod store_words;
mod trace;
mod tree;
mod words;
mod written;

pub use explain::{Explanation, explain};
pub use finding::{Finding, Mistakes};
pub use load::{LoadError, Loaded, MAX_FILE_BYTES, load, load_bytes, parse, read};
pub use nearest::nearest;
pub use schema::schema;
pub use settings::{
    DEFAULT_SAMPLE, DashboardSettings, DecidingClock, DoorSettings, DoorTlsFiles, KeySource,
    MemcachedLayout, MemcachedSettings, MemoryBounds, OnMove, Parents, PreviousMap, Reads,
    RedisSettings, RememberRefusals, RolloutSettings, SentinelAccess, ServeSettings, Settings,
    ShadowSettings, ShardSettings, Shown, SideSettings, StepForm, StoreSettings, TlsFiles,
    TlsIdentity, Topology, TracesSettings, Transport,
};
pub use trace::{Outcome, Step, Trace, trace};
