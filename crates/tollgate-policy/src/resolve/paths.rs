//! Converts the key `paths` to the options for comparing paths.

use tollgate_core::policy::{AmbiguousPaths, PathOptions, PathParameters, Rule};

use crate::decode::{Field, quoted};
use crate::raw::PolicyFile;
use crate::report::Report;
use crate::span::Span;

/// Returns the options for comparing paths, or `None` after reporting a mistake.
pub(super) fn paths(file: &PolicyFile, report: &mut Report<'_>) -> Option<PathOptions> {
    let raw = match &file.paths {
        Field::Absent => return Some(PathOptions::default()),
        Field::Invalid => return None,
        Field::Value(given) => &given.value,
    };
    let options = PathOptions {
        case: raw.case.value().map(|case| case.0).unwrap_or_default(),
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
pub(super) fn check<'r>(
    options: PathOptions,
    rules: impl Iterator<Item = (&'r Rule, Span)>,
    report: &mut Report<'_>,
) {
    if options.parameters == PathParameters::Keep {
        return;
    }
    for (rule, at) in rules {
        let patterns = rule.matches.path_patterns().into_iter();
        for pattern in patterns.filter(|pattern| pattern.has_path_parameters()) {
            let message = format_args!("no path matches {}", quoted(pattern.as_str()));
            report.error(at, message, "`paths: { parameters: drop }` removes what follows a `;`");
        }
    }
}
