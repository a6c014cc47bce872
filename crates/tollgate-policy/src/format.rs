//! Formats policy files: writes them in the standard form.

use std::mem;

use granit_parser::{Event, Parser};
use pretty_yaml::config::{FormatOptions, LanguageOptions, LayoutOptions};
use pretty_yaml::format_text;

use crate::files::MAX_FILE_BYTES;
use crate::finding::PolicyErrors;
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind, document};

/// The longest line, in characters, that the formatter does not break.
const LINE_WIDTH: usize = 120;

/// The most passes of the formatter over one text. A comment after the last value of a file without
/// a final line break moves in the second pass, and nothing moves in the third.
const MAX_PASSES: usize = 4;

/// Returns the `text` of a policy file, or of a file that it includes, in the standard form: two
/// spaces for each level, one space after `:` and `,`, double quotes, no trailing spaces. Keys,
/// values, comments and blank lines keep their order. `name` is the name of the file in messages.
///
/// The result has the same meaning as `text`. The function checks this: it parses and compares
/// both.
///
/// ```
/// let text = "limits:\n    core:   {quota: 60,window: 1h}   # anonymous clients\n";
/// let formatted = tollgate_policy::format("shop.yaml", text)?;
/// assert_eq!(formatted, "limits:\n  core: { quota: 60, window: 1h } # anonymous clients\n");
/// # Ok::<(), tollgate_policy::PolicyErrors>(())
/// ```
///
/// # Errors
/// `text` is not one YAML document, or is larger than [`MAX_FILE_BYTES`].
pub fn format(name: &str, text: &str) -> Result<String, PolicyErrors> {
    let mut report = Report::new(name, text);
    match formatted(text, &mut report) {
        Some(formatted) if report.is_clean() => Ok(formatted),
        _ => Err(report.into_errors()),
    }
}

/// Returns the formatted `text`, or `None` after reporting why `text` cannot be formatted.
fn formatted(text: &str, report: &mut Report<'_>) -> Option<String> {
    if text.len() > MAX_FILE_BYTES {
        let message = format_args!("the file is larger than {MAX_FILE_BYTES} bytes");
        report.plain_error(Span::START, message);
        return None;
    }
    let before = document(text, report)?;
    let options = FormatOptions {
        layout: LayoutOptions { print_width: LINE_WIDTH, ..LayoutOptions::default() },
        language: LanguageOptions {
            format_comments: true,
            trailing_comma: false,
            ..LanguageOptions::default()
        },
    };
    let mut formatted = text.to_owned();
    for _ in 0..MAX_PASSES {
        let last = match format_text(&formatted, &options) {
            Ok(next) => mem::replace(&mut formatted, next),
            Err(error) => {
                report.plain_error(Span::START, format_args!("cannot be formatted: {error}"));
                return None;
            }
        };
        if last == formatted {
            break;
        }
    }
    let after = document(&formatted, &mut Report::new("", &formatted));
    let is_same = after.is_some_and(|after| means_the_same(&before, &after))
        && comments(text) == comments(&formatted);
    if !is_same {
        let message = "cannot be formatted without a change of its meaning or its comments";
        report.plain_error(Span::START, message);
        return None;
    }
    Some(formatted)
}

/// Returns whether both nodes have the same values. Single and double quotes are equal, but a text
/// in quotes differs from a word without quotes.
fn means_the_same(one: &Node, other: &Node) -> bool {
    match (&one.kind, &other.kind) {
        (NodeKind::Null, NodeKind::Null) => true,
        (NodeKind::Plain(one), NodeKind::Plain(other))
        | (NodeKind::Quoted(one), NodeKind::Quoted(other)) => one == other,
        (NodeKind::Sequence(one), NodeKind::Sequence(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| means_the_same(one, other))
        }
        (NodeKind::Mapping(one), NodeKind::Mapping(other)) => {
            let is_same = |((one_key, one), (other_key, other)): (&(Node, Node), &(Node, Node))| {
                means_the_same(one_key, other_key) && means_the_same(one, other)
            };
            one.len() == other.len() && one.iter().zip(other).all(is_same)
        }
        _ => false,
    }
}

/// Returns the comments in `text`, without their `#` and the white space around them.
fn comments(text: &str) -> Vec<String> {
    let mut options = granit_parser::options! { disallow_directives: true };
    options.set_emit_comments(true);
    let events = Parser::new_from_str_with_options(text, options);
    let comment = |event: Result<(Event<'_>, _), _>| match event {
        Ok((Event::Comment(text, ..), _)) => Some(text.trim_start_matches('#').trim().to_owned()),
        _ => None,
    };
    events.filter_map(comment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_would_be_lost_is_noticed() {
        assert_eq!(comments("# a\nb: 1 #c\n#  d\n"), ["a", "c", "d"]);
    }

    #[test]
    fn another_meaning_is_noticed() {
        let tree = |text: &str| document(text, &mut Report::new("", text)).unwrap();
        let same = |one: &str, other: &str| means_the_same(&tree(one), &tree(other));
        assert!(same("a: 'b'", "{ a: \"b\" }"));
        for (one, other) in [
            ("a: '1'", "a: 1"),
            ("a: [1, 2]", "a: [1]"),
            ("a: 1\nb: 2", "b: 2\na: 1"),
            ("a: ", "a: {}"),
            ("a: 1", "a: 1\nb: 2"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }
}
