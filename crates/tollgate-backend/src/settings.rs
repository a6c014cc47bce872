//! Conversion of the settings of the policy file to the settings of the stores.

mod deny_cache_ttl;
pub(crate) mod endpoints;
mod error;
mod memory_bounds;
mod secret;
mod secret_error;

pub use deny_cache_ttl::Refunds;
pub(crate) use deny_cache_ttl::deny_cache_ttl;
pub use error::OpenError;
pub use memory_bounds::memory_bounds;
pub use secret::hash_key;
pub use secret_error::{SHORTEST_SECRET, SecretError};
