//! Checks a deployment. The module reads the statistics of every server, and evaluates them with
//! pure functions, each in a file of its own.

mod checks;
mod examine;
mod finding;
mod memcached;
mod report;

pub(crate) use finding::{Finding, Level};

use tollgate_policy::LoadedPolicy;

use crate::failure::Failure;
use crate::output::{Form, print};

/// Examines the store of `loaded`, and returns the findings that are warnings or problems.
///
/// # Errors
/// Errors that waiting does not solve, such as missing files.
pub(crate) async fn warnings(loaded: &LoadedPolicy) -> Result<Vec<Finding>, Failure> {
    let mut findings = examine::store(loaded).await?;
    findings.retain(|finding| finding.level >= Level::Warning);
    Ok(findings)
}

/// Examines the store of `loaded`, prints the findings, and fails if one of them is at least as
/// severe as `fails_from`.
///
/// # Errors
/// An error with the number of severe findings, after all findings are printed.
pub(crate) async fn run(
    loaded: &LoadedPolicy,
    form: Form,
    fails_from: Level,
) -> Result<(), Failure> {
    let findings = examine::store(loaded).await?;
    print(&report::render(&findings, form))?;
    match findings.iter().filter(|finding| finding.level >= fails_from).count() {
        0 => Ok(()),
        1 => Err("one finding needs action".into()),
        several => Err(format!("{several} findings need action").into()),
    }
}
