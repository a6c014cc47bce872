//! A deployment's check: every server is asked about itself, and what it tells is judged by checks
//! that are pure, each in a file of its own.

mod checks;
mod examine;
mod finding;
mod memcached;
mod report;

pub(crate) use finding::{Finding, Level};

use tollgate_policy::LoadedPolicy;

use crate::failure::Failure;
use crate::output::{Form, print};

/// Examines the store of `loaded`, tells what was found, and fails if any of it is as bad as
/// `fails_from`.
///
/// # Errors
/// How much was found, after all of it is told.
pub(crate) async fn run(
    loaded: &LoadedPolicy,
    form: Form,
    fails_from: Level,
) -> Result<(), Failure> {
    let findings = examine::store(loaded).await?;
    print(&report::render(&findings, form))?;
    match findings.iter().filter(|finding| finding.level >= fails_from).count() {
        0 => Ok(()),
        1 => Err("one finding asks for action".into()),
        several => Err(format!("{several} findings ask for action").into()),
    }
}
