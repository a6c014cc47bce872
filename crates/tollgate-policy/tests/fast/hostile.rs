//! Reading a policy file ends in bounded time without a panic, whatever the file contains. Every
//! reported position exists in the file.

use std::fmt::Write;

use proptest::prelude::*;
use tollgate_policy::{LoadError, LoadedPolicy, MAX_FILE_BYTES, PolicyErrors, load, parse};

const GITHUB: &str = include_str!("../../../../policies/github-redis.yaml");

/// Checks that every mistake has a position in `text`.
fn check_places(text: &str, mistakes: &PolicyErrors) {
    assert!(!mistakes.findings().is_empty());
    let lines: Vec<&str> = text.split('\n').collect();
    for finding in mistakes.findings() {
        let line =
            lines.get(finding.line() - 1).unwrap_or_else(|| panic!("{finding}\n in {text:?}"));
        let end = line.chars().count() + 1;
        assert!((1..=end).contains(&finding.column()), "{finding}\n in {text:?}");
        let texts = [finding.message(), finding.hint().unwrap_or_default()];
        assert!(!texts.concat().contains(char::is_control), "{finding}");
        assert!(!finding.message().contains("not understood"), "a silent refusal of {text:?}");
    }
    assert!(!mistakes.to_string().is_empty());
}

fn read(text: &str) {
    match parse("any.yaml", text) {
        Ok(LoadedPolicy { policy, .. }) => {
            assert!(!policy.rules().is_empty() || !policy.domains().is_empty());
        }
        Err(mistakes) => check_places(text, &mistakes),
    }
}

/// Returns `text` with `length` characters at `place` replaced by `with`.
fn mutated(text: &str, place: usize, length: usize, with: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let start = place % (letters.len() + 1);
    let end = (start + length).min(letters.len());
    let (before, after) = (&letters[..start], &letters[end..]);
    before.iter().copied().chain(with.chars()).chain(after.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_to_its_end(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn any_yaml_like_text_is_read_to_its_end(text in "[a-c:{}\\[\\],\\-\n &*!|>'\"#%0-9~?\t\r]{0,80}") {
        read(&text);
    }

    #[test]
    fn a_policy_with_slips_of_the_hand_is_read_to_its_end(
        slips in prop::collection::vec(
            (any::<usize>(), 0..12_usize, "[a-z0-9:{}\\[\\],\\- \n&*'\"#~_.\u{e9}\u{1f600}\u{0}]{0,6}"),
            1..4,
        ),
    ) {
        let mut text = GITHUB.to_owned();
        for (place, length, with) in slips {
            text = mutated(&text, place, length, &with);
        }
        read(&text);
    }

    #[test]
    fn a_policy_with_a_line_gone_or_twice_is_read_to_its_end(line in any::<usize>(), copies in 0..3_usize) {
        let lines: Vec<&str> = GITHUB.lines().collect();
        let line = line % lines.len();
        let mut text = String::new();
        for (index, content) in lines.iter().enumerate() {
            for _ in 0..if index == line { copies } else { 1 } {
                writeln!(text, "{content}").unwrap();
            }
        }
        read(&text);
    }
}

#[test]
fn every_beginning_of_a_policy_is_read_to_its_end() {
    for (end, _) in GITHUB.char_indices() {
        read(&GITHUB[..end]);
    }
}

#[test]
fn line_ends_of_other_systems_are_fine() {
    let loaded = parse("crlf.yaml", &GITHUB.replace('\n', "\r\n")).unwrap();
    assert_eq!(loaded.policy.rules().len(), 6);
    let loaded = parse("bom.yaml", &format!("\u{feff}{GITHUB}")).unwrap();
    assert_eq!(loaded.policy.rules().len(), 6);
}

#[test]
fn a_thousand_mistakes_are_counted_and_a_hundred_shown() {
    let mut text = "limits: { core: { quota: 1, window: 1s } }\nrules:\n".to_owned();
    for _ in 0..1_000 {
        text.push_str("  - { limits: cor }\n");
    }
    let mistakes = parse("many.yaml", &text).unwrap_err();
    assert_eq!((mistakes.findings().len(), mistakes.count()), (100, 1_000));
    let reply = mistakes.to_string();
    assert!(reply.ends_with("1000 mistakes in many.yaml, the first 100 shown"), "{reply}");
}

#[test]
fn large_files_are_refused() {
    let text = format!("{GITHUB}# {}", "x".repeat(MAX_FILE_BYTES));
    let mistakes = parse("large.yaml", &text).unwrap_err();
    assert_eq!(mistakes.findings()[0].message(), "the file is larger than 1048576 bytes");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    std::fs::write(&path, &text).unwrap();
    let Err(LoadError::Invalid(mistakes)) = load(&path) else { panic!("it was read") };
    assert_eq!(mistakes.findings()[0].message(), "the file is larger than 1048576 bytes");
}

#[test]
fn values_as_many_as_may_be_are_read_in_bounded_time() {
    let mut text = "limits:\n".to_owned();
    for index in 0..8_000 {
        writeln!(text, "  limit-{index}: {{ quota: 1, window: 1s }}").unwrap();
    }
    text.push_str("rules: [{ limits: limit-1 }]\n");
    assert_eq!(parse("many.yaml", &text).unwrap().policy.limits().len(), 8_000);
    text.push_str(&format!("answers: {{ refund: {{ status: [{}] }} }}\n", "304, ".repeat(20_000)));
    let mistakes = parse("many.yaml", &text).unwrap_err();
    assert!(mistakes.to_string().contains("more than 50000 values"), "{mistakes}");
}

/// A regression test: aliases were nested without a limit, and a chain of them overflowed the stack.
#[test]
fn an_alias_counts_with_all_levels_of_its_node() {
    let nested =
        |inner: &str, levels| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let first_finding = |text: &str| {
        let mistakes = parse("deep.yaml", text).unwrap_err();
        check_places(text, &mistakes);
        let finding = &mistakes.findings()[0];
        (finding.message().to_owned(), finding.line(), finding.column())
    };
    // The mapping is one level.
    let of = |levels| format!("a: &a {}\nb: {}\n", nested("1", 20), nested("*a", levels));
    assert!(first_finding(&of(11)).0.contains("unknown key"), "{:?}", first_finding(&of(11)));
    let message = "nested more than 32 levels deep, with this alias expanded".to_owned();
    assert_eq!(first_finding(&of(12)), (message.clone(), 2, 16));

    let mut chain = format!("a0: &a0 {}\n", nested("1", 30));
    for link in 1..50 {
        let alias = nested(&format!("*a{}", link - 1), 30);
        writeln!(chain, "a{link}: &a{link} {alias}").unwrap();
    }
    assert_eq!(first_finding(&chain), (message, 2, 39));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.yaml");
    let Err(error) = load(&missing) else { panic!("it was read") };
    let path = missing.display();
    let error = error.to_string();
    assert!(error.starts_with(&format!("cannot read the policy file {path}: ")), "{error}");
    let advice = "; check the path, or write a first policy with `tollgate suggest`";
    assert!(error.ends_with(advice), "{error}");

    let binary = folder.path().join("binary.yaml");
    std::fs::write(&binary, b"limits: \xff\xfe").unwrap();
    let Err(error) = load(&binary) else { panic!("it was read") };
    let path = binary.display();
    let expected = format!("the policy file {path} is not UTF-8 text: byte 8 is invalid");
    assert_eq!(error.to_string(), expected);
}
