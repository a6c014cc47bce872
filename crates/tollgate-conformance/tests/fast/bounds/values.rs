//! The numbers on the page of bounds are those of the constants in the code.

use std::collections::BTreeMap;
use std::fs;

use super::{names, root, sources};

/// The value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Number(u128),
    Millis(u128),
}

/// The expression of every constant, by its name. Several crates may use one name.
type Constants = BTreeMap<String, Vec<String>>;

#[test]
fn every_number_of_the_page_is_that_of_its_constant() {
    let constants = constants();
    let page = fs::read_to_string(root().join("docs/bounds.md")).expect("the page of bounds");
    let mut compared = 0;
    let mut wrong = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
        let (text, said_by) = row.trim_matches('|').rsplit_once('|').expect("a row has cells");
        for name in names(said_by) {
            let values = values(&constants, name);
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
    let mut constants = Constants::new();
    constants.insert("LOOK".into(), vec!["Duration::from_millis(500)".into()]);
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
        ("u64::MAX as usize", Value::Number(u128::from(u64::MAX))),
    ] {
        assert_eq!(evaluate(&constants, text, 0), Some(value), "{text}");
    }
    assert_eq!(evaluate(&constants, "Schedule::new(&SECONDS)", 0), None);
    assert!(has("at most 1,000 of them", "1,000") && !has("at most 11,000", "1,000"));
    assert!(!has("1,000,000", "1,000") && !has("250 ms", "250 m"));
}

/// Returns the values of the constants of this name, without those that are no number.
fn values(constants: &Constants, name: &str) -> Vec<Value> {
    let last = name.rsplit("::").next().unwrap_or(name);
    let expressions = constants.get(last).into_iter().flatten();
    expressions.filter_map(|text| evaluate(constants, text, 0)).collect()
}

fn constants() -> Constants {
    let mut found = Constants::new();
    for source in sources() {
        let code = source.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (at, _) in code.match_indices("const ") {
            let Some((head, _)) = code[at..].split_once(';') else { continue };
            let Some((declared, expression)) = head.split_once(" = ") else { continue };
            let Some((name, _)) = declared["const ".len()..].split_once(':') else { continue };
            if name
                .chars()
                .all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
            {
                let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
                found.entry(name.to_owned()).or_default().push(expression);
            }
        }
    }
    found
}

/// Evaluates an expression of literals, `+`, `-`, `*`, `/`, `<<`, durations and other constants.
fn evaluate(constants: &Constants, text: &str, depth: u8) -> Option<Value> {
    let text = text.trim();
    if depth > 8 {
        return None;
    }
    for operators in [&["<<"][..], &[" + ", " - "], &[" * ", " / "]] {
        if let Some((at, operator)) = last_outside(text, operators) {
            let left = evaluate(constants, &text[..at], depth + 1)?;
            let right = evaluate(constants, &text[at + operator.len()..], depth + 1)?;
            return combine(left, operator.trim(), right);
        }
    }
    if let Some((value, _)) = text.rsplit_once(" as ") {
        return evaluate(constants, value, depth + 1);
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        return evaluate(constants, inner, depth + 1);
    }
    if let Some(number) = text.strip_suffix(".unwrap()") {
        return evaluate(constants, number, depth + 1);
    }
    if let Ok(number) = text.replace('_', "").parse() {
        return Some(Value::Number(number));
    }
    if let Some((function, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let Value::Number(inner) = evaluate(constants, inner, depth + 1)? else { return None };
        return match function {
            "Duration::from_secs" | "Millis::from_secs" => Some(Value::Millis(inner * 1_000)),
            "Duration::from_millis" | "Millis::new" => Some(Value::Millis(inner)),
            _ if function.starts_with("NonZero") => Some(Value::Number(inner)),
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
    let [expression] = constants.get(name)?.as_slice() else { return None };
    evaluate(constants, expression, depth + 1)
}

/// Returns the last of these operators that is not in parentheses.
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

/// Returns how the page may write a value.
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

/// Returns whether `text` contains this value, not as part of a longer number or word.
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
