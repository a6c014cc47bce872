//! Converts the key `paths` to the options for comparing paths.

use tollgate_core::policy::{AmbiguousPaths, PathCase, PathOptions, PathParameters};

use super::rules::ResolvedRule;
use crate::decode::{Field, quoted};
use crate::raw::PolicyFile;
use crate::report::Report;

/// Returns the options for comparing paths, or `None` after reporting a mistake. Also reports path
/// patterns of `rules` that match no path.
pub(super) fn paths(
    file: &PolicyFile,
    rules: &[Option<ResolvedRule>],
    report: &mut Report<'_>,
) -> Option<PathOptions> {
    let options = options(file, report);
    check_patterns(options.unwrap_or_default(), rules, report);
    options
}

/// Returns whether paths are case-sensitive.
pub(super) fn case(file: &PolicyFile) -> PathCase {
    let case = file.paths.value().and_then(|paths| paths.case.value());
    case.map(|case| case.0).unwrap_or_default()
}

fn options(file: &PolicyFile, report: &mut Report<'_>) -> Option<PathOptions> {
    let raw = match &file.paths {
        Field::Absent => return Some(PathOptions::default()),
        Field::Invalid => return None,
        Field::Value(given) => &given.value,
    };
    let options = PathOptions {
        case: case(file),
        parameters: raw.parameters.value().map(|kept| kept.0).unwrap_or_default(),
        ambiguous: raw.ambiguous.value().map(|ambiguous| ambiguous.0).unwrap_or_default(),
    };
    if let Some(given) = raw.ambiguous.given()
        && options.ambiguous == AmbiguousPaths::Pass
    {
        let message = "paths that services interpret in different ways pass";
        let hint = "a client can choose a spelling that the service accepts and no rule matches; the path is forwarded unchanged";
        report.warning(given.at, message, hint);
    }
    Some(options)
}

/// Reports path patterns of the rules that match no path if paths are compared with `options`.
fn check_patterns(options: PathOptions, rules: &[Option<ResolvedRule>], report: &mut Report<'_>) {
    if options.parameters == PathParameters::Keep {
        return;
    }
    for ResolvedRule { rule, at } in rules.iter().flatten() {
        let patterns = rule.matches.path_patterns().into_iter();
        for pattern in patterns.filter(|pattern| pattern.has_path_parameters()) {
            let message = format_args!("no path matches {}", quoted(pattern.as_str()));
            report.error(*at, message, "`paths: { parameters: drop }` removes what follows a `;`");
        }
    }
}
