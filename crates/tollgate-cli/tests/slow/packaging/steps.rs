//! The commands of a session as a page shows it, with their output.

use crate::packaging::shown::ANYTHING;

/// Programs that run until they are stopped.
const SERVERS: [&str; 5] = ["tollgate serve ", "tollgate proxy ", "nginx ", "haproxy ", "envoy "];

/// One command of a page.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) command: String,
    /// The output that the page shows.
    pub(crate) shown: String,
}

impl Step {
    /// Returns the program of the command, if the program keeps running during later commands.
    pub(crate) fn staying(&self) -> Option<&str> {
        let begun = SERVERS.iter().any(|begin| self.command.starts_with(begin));
        self.command.strip_suffix(" &").or_else(|| begun.then_some(&*self.command))
    }

    /// Returns the last output that the page shows. Once this output has been printed, the whole
    /// output is complete.
    pub(crate) fn last(&self) -> &str {
        let pieces = self.shown.lines().flat_map(|line| line.split(ANYTHING));
        pieces.map(str::trim).rfind(|piece| !piece.is_empty()).unwrap_or_default()
    }
}

/// Returns the steps of a block. A command begins with `$ ` and continues after `\`, after `|` and
/// within quotes.
pub(crate) fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in block.lines() {
        let command = match line.strip_prefix("$ ") {
            Some(begun) => {
                steps.push(Step { command: String::new(), shown: String::new() });
                Some(begun)
            }
            None => goes_on.then_some(line),
        };
        let step = steps.last_mut().unwrap_or_else(|| panic!("no command before {line:?}"));
        let text = if command.is_some() { &mut step.command } else { &mut step.shown };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(command.unwrap_or(line));
        goes_on = command.is_some() && {
            let quotes = step.command.matches('\'').count();
            step.command.ends_with(['\\', '|']) || quotes % 2 == 1
        };
    }
    steps
}

#[test]
fn commands_are_distinguished_from_what_they_print() {
    let steps = steps("$ one \\\n    two\nfirst\n$ three 'a\nb'\nsecond\nthird\n$ four &\n… 5\n");
    let response: Vec<_> = steps.iter().map(|step| (&*step.command, &*step.shown)).collect();
    let expected =
        [("one \\\n    two", "first"), ("three 'a\nb'", "second\nthird"), ("four &", "… 5")];
    assert_eq!(response, expected);
    assert_eq!((steps[0].staying(), steps[2].staying()), (None, Some("four")));
    assert_eq!((steps[1].last(), steps[2].last()), ("third", "5"));
}
