//! Converts the key `tenants` to the subject that contains the name of the tenant, and to the word
//! by which limits refer to the tenant's plan.

use super::quotas::{Subjects, is_trusted};
use crate::decode::Field;
use crate::raw::PolicyFile;
use crate::report::Report;

/// The default word by which limits refer to the tenant's plan.
const PLAN: &str = "plan";

/// Returns the word by which limits refer to the tenant's plan. Returns `None` if the file has no
/// tenants.
pub(super) fn plan(file: &PolicyFile) -> Option<&str> {
    let tenants = file.tenants.value()?;
    Some(tenants.plan.value().map_or(PLAN, |plan| &plan.0))
}

/// Returns the index of the subject that contains the name of the tenant. Returns `Some(None)` if
/// the file has no tenants, and `None` after reporting a mistake.
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
