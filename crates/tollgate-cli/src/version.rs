//! The version of this build.

/// The version, the commit if it is known, and the target:
/// `0.1.0 (1a2b3c4d5e6f, x86_64-unknown-linux-gnu)`. The text has no date and no path, so the same
/// source gives the same binary.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("TOLLGATE_BUILT_FROM"), ")");
