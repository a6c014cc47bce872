//! Converts the key `first_of` to a subject made from several other subjects. For each request,
//! Tollgate uses the first of these subjects for which the request has a value.

use tollgate_core::policy::{Dimension, SubjectSource};

use super::names::NameTable;
use crate::decode::{List, Spanned, Text, quoted};
use crate::raw::Subject;
use crate::report::Report;

/// The largest number of subjects in `first_of`.
const MAX_CHAIN: usize = 8;

/// Returns the subjects in the list `chain` of a `first_of`, or `None` after reporting a mistake.
pub(super) fn dimensions(
    chain: &Spanned<List<Text>>,
    subjects: &mut NameTable<'_, Subject>,
    known: &[Option<Dimension>],
    report: &mut Report<'_>,
) -> Option<Vec<Dimension>> {
    let List(names) = &chain.value;
    if !(2..=MAX_CHAIN).contains(&names.len()) {
        let message = format_args!("a chain of {} subjects", names.len());
        let hint = format_args!("expected 2 to {MAX_CHAIN}, such as [user, address]");
        report.error(chain.at, message, hint);
        return None;
    }
    let mut found: Vec<Dimension> = Vec::with_capacity(names.len());
    let mut is_complete = true;
    for Spanned { value: Text(name), at, .. } in names {
        let Some(index) = subjects.index(name, *at, report) else {
            is_complete = false;
            continue;
        };
        let is_chain = subjects.all()[index].value.as_ref().is_some_and(is_chain);
        if is_chain {
            let message = format_args!("{} is a chain itself", quoted(name));
            report.error(*at, message, "list the subjects of both chains here");
            is_complete = false;
        } else if found.iter().any(|one| *one.name == **name) {
            report.plain_error(*at, format_args!("duplicate subject {}", quoted(name)));
            is_complete = false;
        } else if let Some(before) = found.last().filter(|one| is_always_present(&one.source)) {
            let message = format_args!("the subject {} is never used here", quoted(name));
            let hint =
                format_args!("every request has {}: move it to the end", quoted(&before.name));
            report.error(*at, message, hint);
            is_complete = false;
        } else {
            match &known[index] {
                Some(dimension) => found.push(dimension.clone()),
                None => is_complete = false,
            }
        }
    }
    is_complete.then_some(found)
}

fn is_chain(subject: &Subject) -> bool {
    !subject.first_of.is_absent()
}

/// Returns whether every request has a value for the subject.
fn is_always_present(source: &SubjectSource) -> bool {
    matches!(
        source,
        SubjectSource::ClientAddress { .. }
            | SubjectSource::Constant { .. }
            | SubjectSource::Method
            | SubjectSource::Route
    )
}
