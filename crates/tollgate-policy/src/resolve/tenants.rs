//! Tenants: the subject that names them, and the word for their plan.

use super::quotas::{Subjects, is_trusted};
use crate::decode::Field;
use crate::raw::PolicyFile;
use crate::report::Report;

/// The word for the plan of the tenant if the file has no other.
const PLAN: &str = "plan";

/// Returns the word for the plan of the tenant, if the file has tenants.
pub(super) fn plan(file: &PolicyFile) -> Option<&str> {
    let tenants = file.tenants.value()?;
    Some(tenants.plan.value().map_or(PLAN, |plan| &plan.0))
}

/// Returns the index of the subject that names the tenant: `Some(None)` if the file has no tenants,
/// `None` after reporting a mistake.
pub(super) fn tenants(
    file: &PolicyFile,
    subjects: &mut Subjects<'_, '_>,
    report: &mut Report<'_>,
) -> Option<Option<usize>> {
    let tenants = match &file.tenants {
        Field::Absent => return Some(None),
        Field::Invalid => return None,
        Field::Value(tenants) => &tenants.value,
    };
    let by = tenants.by.given()?;
    let index = subjects.table.index(&by.value.0, by.at, report)?;
    is_trusted(index, by, "quota", subjects, report)?;
    Some(Some(index))
}
