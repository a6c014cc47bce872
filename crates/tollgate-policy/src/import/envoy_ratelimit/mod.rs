//! Generates policies from the configuration files of `envoyproxy/ratelimit`.
//!
//! The import interprets a file as that server does. Mistakes that the server rejects are errors of
//! the import. Constructs that the server ignores are notes. If newer versions of the server accept
//! more than older ones, the import follows the newer versions.

mod convert;
mod fields;
mod names;
mod policy;
mod source;

use std::fmt::Write;

pub use tollgate_core::policy::descriptors::Counting;

use self::convert::Converter;
use super::{ImportError, Imported, SourceFile};
use crate::finding::PolicyErrors;
use crate::load;
use crate::report::Report;

/// Converts configuration `files` of `envoyproxy/ratelimit`, one domain per file, to a policy.
/// Files of the same domain are merged in their order.
///
/// With [`Counting::Each`], requests are counted as that server counts them. With
/// [`Counting::Atomic`], a refused request is not counted on any limit.
///
/// # Errors
/// [`ImportError`]: all mistakes in the files, or a policy that is too large to be loaded.
pub fn envoy_ratelimit(
    files: &[SourceFile<'_>],
    counting: Counting,
) -> Result<Imported, ImportError> {
    let mut converter = Converter::new(counting);
    let mut wrong: Vec<PolicyErrors> = Vec::new();
    let mut sources = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut report = Report::new(file.name, file.text);
        let source = source::read(file, &mut report);
        if let Some(source) = source {
            converter.check(&source, &mut report);
            sources.push(source);
            let is_last = index + 1 == files.len();
            if is_last && wrong.is_empty() && report.is_clean() {
                converter.check_all(&sources, &mut report);
            }
        }
        if !report.is_clean() {
            wrong.push(report.into_errors());
        }
    }
    if !wrong.is_empty() {
        return Err(ImportError::Source(wrong));
    }
    converter.names(&sources);
    sources.iter().for_each(|source| converter.add(source));
    let (policy, notes) = converter.finish();
    let policy = format!("{}{policy}", heading(files));
    let loaded = load::parse("the policy", &policy).map_err(ImportError::Policy)?;
    Ok(Imported { policy, notes, warnings: loaded.warnings })
}

fn heading(files: &[SourceFile<'_>]) -> String {
    let mut heading = String::from("# Written by `tollgate import envoy-ratelimit` from\n");
    for file in files {
        let name: String = file.name.chars().filter(|letter| !letter.is_control()).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(heading, "#   {name}");
    }
    heading
}
