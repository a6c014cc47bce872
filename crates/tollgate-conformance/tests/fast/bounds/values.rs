//! Reads the values of constants from the code, for the page of bounds.

use std::collections::BTreeMap;
use std::fs;

use super::{names, root, sources};

/// The value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Number(u128),
    Millis(u128),
}

/// A constant, or the default value of a field.
struct Constant {
    /// The crate, folders and modules of the constant's file.
    modules: Vec<String>,
    expression: String,
}

/// Every constant by its name, and every default value of a field by `Type::field`. Constants in
/// several modules may have the same name.
#[derive(Default)]
pub(super) struct Constants(BTreeMap<String, Vec<Constant>>);

#[test]
fn every_number_of_the_page_is_that_of_its_constant() {
    let constants = Constants::read();
    let page = fs::read_to_string(root().join("docs/bounds.md")).expect("the page of bounds");
    let mut compared = 0;
    let mut wrong = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
        let (text, said_by) = row.trim_matches('|').rsplit_once('|').expect("a row has cells");
        for name in names(said_by) {
            let values = constants.values(name.rsplit("::").next().unwrap_or(name));
            if values.is_empty() {
                continue;
            }
            compared += 1;
            let texts: Vec<_> = values.into_iter().flat_map(spellings).collect();
            if !texts.iter().any(|value| has(text, value) || has(said_by, value)) {
                wrong.push(format!("{name} is {}, and its row says {text}", texts.join(" or ")));
            }
        }
    }
    assert!(compared > 80, "only {compared} constants found: is this the page?");
    assert!(wrong.is_empty(), "in docs/bounds.md:\n{}", wrong.join("\n"));
}

#[test]
fn expressions_of_constants_are_read() {
    let mut constants = Constants::default();
    constants.add("LOOK", &[], "Duration::from_millis(500)");
    constants.add("LOOK_AGAIN", &["near"], "7");
    constants.add("LOOK_AGAIN", &["far"], "9");
    let near = ["near".to_owned()];
    for (text, value) in [
        ("10_000", Value::Number(10_000)),
        ("64 * 1024 * 1024", Value::Number(64 << 20)),
        ("64 << 20", Value::Number(64 << 20)),
        ("(1 << 4) - 1", Value::Number(15)),
        ("2 + 3 * 4", Value::Number(14)),
        ("Duration::from_secs(30 * 60)", Value::Millis(1_800_000)),
        ("Millis::new(250)", Value::Millis(250)),
        ("NonZeroU32::new(7).unwrap()", Value::Number(7)),
        ("super::LOOK", Value::Millis(500)),
        ("LOOK_AGAIN", Value::Number(7)),
        ("u64::MAX as usize", Value::Number(u128::from(u64::MAX))),
    ] {
        assert_eq!(constants.evaluate(&near, text, 0), Some(value), "{text}");
    }
    assert_eq!(constants.evaluate(&[], "Schedule::new(&SECONDS)", 0), None);
    assert_eq!(constants.evaluate(&[], "LOOK_AGAIN", 0), None, "two modules have one");
    assert!(has("at most 1,000 of them", "1,000") && !has("at most 11,000", "1,000"));
    assert!(!has("1,000,000", "1,000") && !has("250 ms", "250 m"));
}

#[test]
fn placeholders_are_replaced_by_values() {
    let mut constants = Constants::default();
    constants.add("SIZE", &["tollgate-http", "frame"], "64 << 10");
    constants.add("SIZE", &["tollgate-http", "body"], "5");
    constants.add("PAUSE", &[], "Duration::from_secs(300)");
    constants.add("Limits::wait", &["proxy"], "Duration::from_millis(250)");
    let fill = |text: &str| constants.fill(text);
    assert_eq!(fill("{frame::SIZE:KiB}; {http::frame::SIZE}").unwrap(), "64 KiB; 65,536");
    assert_eq!(fill("{PAUSE}, {PAUSE:min}, {Limits::wait}").unwrap(), "300 s, 5 min, 250 ms");
    for (wrong, reason) in [
        ("{SIZE}", "SIZE has 2 values"),
        ("{OTHER}", "OTHER has 0 values"),
        ("{PAUSE:h}", "PAUSE is no number of h"),
    ] {
        assert_eq!(fill(wrong).unwrap_err(), reason);
    }
}

impl Constants {
    /// Reads the code of every crate.
    pub(super) fn read() -> Self {
        let mut found = Self::default();
        let crates = root().join("crates");
        for source in sources() {
            let path = source.path.strip_prefix(&crates).expect("a path in a crate");
            let modules = path.with_extension("");
            let modules: Vec<_> = modules.iter().map(|part| part.to_string_lossy()).collect();
            let modules: Vec<_> = modules.iter().map(|part| &**part).collect();
            let code = source.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
            found.add_constants(&modules, code);
            found.add_defaults(&modules, code);
        }
        found
    }

    fn add(&mut self, name: &str, modules: &[&str], expression: &str) {
        let modules = modules.iter().map(|&module| module.to_owned()).collect();
        let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
        self.0.entry(name.to_owned()).or_default().push(Constant { modules, expression });
    }

    fn add_constants(&mut self, modules: &[&str], code: &str) {
        for (at, _) in code.match_indices("const ") {
            let Some((head, _)) = code[at..].split_once(';') else { continue };
            let Some((declared, expression)) = head.split_once(" = ") else { continue };
            let Some((name, _)) = declared["const ".len()..].split_once(':') else { continue };
            if name
                .chars()
                .all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
            {
                self.add(name, modules, expression);
            }
        }
    }

    /// Adds the fields that an `impl Default` sets.
    fn add_defaults(&mut self, modules: &[&str], code: &str) {
        for implementation in code.split("\nimpl Default for ").skip(1) {
            let Some((body, _)) = implementation.split_once("\n}") else { continue };
            let Some((name, fields)) = body.split_once(" {") else { continue };
            for field in fields.lines() {
                let field = field.trim().strip_suffix(',').and_then(|line| line.split_once(": "));
                if let Some((field, expression)) = field {
                    self.add(&format!("{name}::{field}"), modules, expression);
                }
            }
        }
    }

    /// Returns the different values of the constants with this name. Excludes constants that are
    /// not numbers.
    fn values(&self, name: &str) -> Vec<Value> {
        self.values_in(&[], name)
    }

    /// Returns the same values as [`Self::values`], but only of constants in `modules`. A crate may
    /// be named without the prefix `tollgate-`.
    fn values_in(&self, modules: &[&str], name: &str) -> Vec<Value> {
        let mut values = Vec::new();
        for constant in self.0.get(name).into_iter().flatten() {
            let mut parts = constant.modules.iter();
            let is_in = modules.iter().all(|&module| {
                parts.any(|part| part == module || part.strip_prefix("tollgate-") == Some(module))
            });
            let value = self.evaluate(&constant.modules, &constant.expression, 0);
            values.extend(value.filter(|value| is_in && !values.contains(value)));
        }
        values
    }

    /// Replaces each `{NAME}` in `text` by the value of the constant. The module [`super::tables`]
    /// describes the notation.
    ///
    /// # Errors
    ///
    /// Returns an error for a name without a value or with several values, and for a unit in which
    /// the value is not a whole number.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (placeholder, after) = after.split_once('}').ok_or("no end of a placeholder")?;
            let (path, unit) = match placeholder.rsplit_once(':') {
                Some((path, unit)) if !path.ends_with(':') => (path, Some(unit)),
                _ => (placeholder, None),
            };
            let mut modules: Vec<_> = path.split("::").collect();
            let mut name = modules.pop().unwrap_or_default().to_owned();
            if modules.last().is_some_and(|last| last.starts_with(char::is_uppercase)) {
                name = format!("{}::{name}", modules.pop().unwrap_or_default());
            }
            let values = self.values_in(&modules, &name);
            let [value] = values[..] else {
                return Err(format!("{path} has {} values", values.len()));
            };
            filled += before;
            filled += &written(value, unit)
                .ok_or_else(|| format!("{path} is no number of {}", unit.unwrap_or_default()))?;
            rest = after;
        }
        Ok(filled + rest)
    }

    /// Evaluates an expression of literals, `+`, `-`, `*`, `/`, `<<`, durations and other
    /// constants. A constant of the same module takes precedence.
    fn evaluate(&self, modules: &[String], text: &str, depth: u8) -> Option<Value> {
        let text = text.trim();
        let inner = |text: &str| self.evaluate(modules, text, depth + 1);
        if depth > 8 {
            return None;
        }
        for operators in [&["<<"][..], &[" + ", " - "], &[" * ", " / "]] {
            if let Some((at, operator)) = last_outside(text, operators) {
                let left = inner(&text[..at])?;
                let right = inner(&text[at + operator.len()..])?;
                return combine(left, operator.trim(), right);
            }
        }
        if let Some((value, _)) = text.rsplit_once(" as ") {
            return inner(value);
        }
        if let Some(text) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            return inner(text);
        }
        if let Some(number) = text.strip_suffix(".unwrap()") {
            return inner(number);
        }
        if let Ok(number) = text.replace('_', "").parse() {
            return Some(Value::Number(number));
        }
        if let Some((function, text)) = text.strip_suffix(')').and_then(|text| text.split_once('('))
        {
            let Value::Number(number) = inner(text)? else { return None };
            return match function {
                "Duration::from_secs" | "Millis::from_secs" => Some(Value::Millis(number * 1_000)),
                "Duration::from_millis" | "Millis::new" => Some(Value::Millis(number)),
                _ if function.starts_with("NonZero") => Some(Value::Number(number)),
                _ => None,
            };
        }
        match text {
            "u64::MAX" => return Some(Value::Number(u128::from(u64::MAX))),
            "u32::MAX" => return Some(Value::Number(u128::from(u32::MAX))),
            "u16::MAX" => return Some(Value::Number(u128::from(u16::MAX))),
            "u8::MAX" => return Some(Value::Number(u128::from(u8::MAX))),
            _ => {}
        }
        let name = text.rsplit("::").next().unwrap_or(text).trim_end_matches(".get()");
        let found = self.0.get(name)?;
        let constant = match found.as_slice() {
            [constant] => constant,
            several => several.iter().find(|constant| constant.modules == modules)?,
        };
        self.evaluate(&constant.modules, &constant.expression, depth + 1)
    }
}

/// Returns the last operator in `text` that is one of `operators` and is not in parentheses.
fn last_outside<'a>(text: &str, operators: &[&'a str]) -> Option<(usize, &'a str)> {
    let mut open = 0;
    let mut found = None;
    for (at, char) in text.char_indices() {
        match char {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        let operator = operators.iter().find(|operator| text[at..].starts_with(**operator));
        if let Some(operator) = operator.filter(|_| open == 0) {
            found = Some((at, *operator));
        }
    }
    found
}

fn combine(left: Value, operator: &str, right: Value) -> Option<Value> {
    let apply = |left: u128, right: u128| match operator {
        "<<" => left.checked_shl(u32::try_from(right).ok()?),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        _ => left.checked_div(right),
    };
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => apply(left, right).map(Value::Number),
        (Value::Millis(left), Value::Number(right) | Value::Millis(right))
        | (Value::Number(left), Value::Millis(right)) => apply(left, right).map(Value::Millis),
    }
}

/// Returns all texts with which the page may write a value.
fn spellings(value: Value) -> Vec<String> {
    let units: &[(u128, &str)] = match value {
        Value::Number(_) => &[(1, ""), (1 << 10, " KiB"), (1 << 20, " MiB"), (1 << 30, " GiB")],
        Value::Millis(_) => &[
            (1, " ms"),
            (1_000, " s"),
            (60_000, " min"),
            (60_000, " minutes"),
            (3_600_000, " h"),
            (3_600_000, " hours"),
            (86_400_000, " days"),
        ],
    };
    let (Value::Number(number) | Value::Millis(number)) = value;
    let whole = units.iter().filter(|(unit, _)| number % unit == 0 && number > 0);
    whole.map(|(unit, name)| format!("{}{name}", grouped(number / unit))).collect()
}

/// Returns the text with which a generated cell writes a value. A duration without a unit is
/// written in seconds, or in milliseconds if the duration is not a whole number of seconds.
fn written(value: Value, unit: Option<&str>) -> Option<String> {
    let unit = match (value, unit) {
        (_, Some(unit)) => format!(" {unit}"),
        (Value::Number(_), None) => String::new(),
        (Value::Millis(millis), None) if millis % 1_000 == 0 => " s".to_owned(),
        (Value::Millis(_), None) => " ms".to_owned(),
    };
    spellings(value).into_iter().find(|text| {
        text.strip_suffix(&*unit)
            .is_some_and(|number| number.ends_with(|char: char| char.is_ascii_digit()))
    })
}

/// Returns a number with a comma before every three digits.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns whether `text` contains this value. A part of a longer number or word does not count.
fn has(text: &str, value: &str) -> bool {
    text.match_indices(value).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + value.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let goes_on = match next {
            Some(',' | '.') => second.is_some_and(|char| char.is_ascii_digit()),
            other => other.is_some_and(char::is_alphanumeric),
        };
        !before.is_some_and(|char| char.is_alphanumeric() || ",.".contains(char)) && !goes_on
    })
}
