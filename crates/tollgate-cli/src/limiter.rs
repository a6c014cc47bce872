//! From a policy file to what a command needs of it.

use std::path::Path;

use tollgate_policy::Loaded;

use crate::cmd::Failure;

/// Loads the policy at `path`; what works, but hardly as it was meant, is told on standard error.
pub(crate) fn load(path: &Path) -> Result<Loaded, Failure> {
    let loaded = tollgate_policy::load(path)?;
    for warning in &loaded.warnings {
        eprintln!("{warning}\n");
    }
    Ok(loaded)
}
