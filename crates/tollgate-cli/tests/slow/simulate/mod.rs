//! The report of `tollgate simulate` in a browser.

mod browser;
#[path = "../../fast/simulate/setup.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod setup;
