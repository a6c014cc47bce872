//! Which build this is.

/// The version, the commit where it is known, and the target: `0.1.0 (1a2b3c4d5e6f, x86_64-unknown-linux-gnu)`. No
/// date and no path: the same source gives the same bytes.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("TOLLGATE_BUILT_FROM"), ")");
