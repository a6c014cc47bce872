//! An index of the rules that can match a request, by method and by the first byte of the path.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::path::{NormalPath, PathPattern};
use super::rule::Rule;

/// An index of the rules by method and by the first byte of the path. The index excludes the rules
/// that cannot match a request, because they name another method or another first byte. A request
/// is therefore compared with only a few of many rules.
///
/// The index stores sets of rules. A set is a row of bits: one bit for each rule, in the order of
/// the rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleIndex {
    /// The number of 64-bit words in a row.
    words: usize,
    /// The methods that rules name, in capitals, and the [code](code_of) of each. `by_method` has
    /// one row for each of these methods, and a last row for all other methods.
    methods: Vec<Box<str>>,
    codes: Vec<u64>,
    by_method: Vec<u64>,
    /// For each first byte of a path, the start of its row in `by_byte`. `by_byte` has one row for
    /// each first byte of the paths that rules name, and a last row for all other paths.
    starts: Vec<usize>,
    by_byte: Vec<u64>,
}

impl RuleIndex {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut methods: Vec<Box<str>> = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        for rule in rules {
            methods.extend(rule.matches.methods.iter().cloned());
            bytes.extend(rule.matches.paths.iter().filter_map(PathPattern::first_byte));
        }
        methods.sort_unstable();
        methods.dedup();
        bytes.sort_unstable();
        bytes.dedup();
        let words = rules.len().div_ceil(BITS);
        let by_method = rows(rules, methods.len() + 1, |rule, row| {
            rule.matches.methods.is_empty()
                || methods.get(row).is_some_and(|method| rule.matches.matches_method(method))
        });
        let by_byte = rows(rules, bytes.len() + 1, |rule, row| {
            let fits = |pattern: &PathPattern| {
                pattern.first_byte().is_none_or(|first| bytes.get(row) == Some(&first))
            };
            rule.matches.paths.is_empty() || rule.matches.paths.iter().any(fits)
        });
        let row = |byte| bytes.binary_search(&byte).unwrap_or(bytes.len());
        let starts = (0..=u8::MAX).map(|byte| row(byte) * words).collect();
        let codes = methods.iter().map(|method| code_of(method)).collect();
        Self { words, methods, codes, by_method, starts, by_byte }
    }

    /// Returns the indices of the rules that can match a request with `method` and `path`, in
    /// rising order.
    #[inline]
    pub(super) fn candidates(&self, method: &str, path: &NormalPath<'_>) -> Candidates<'_> {
        let method = match code_of(method) {
            LONG => self.methods.iter().position(|own| own.eq_ignore_ascii_case(method)),
            code => self.codes.iter().position(|own| *own == code),
        };
        let method = method.unwrap_or(self.methods.len()) * self.words;
        let start = path.first_byte().and_then(|first| self.starts.get(usize::from(first)));
        let byte = start.map_or(self.by_byte.len() - self.words, |start| *start);
        Candidates {
            by_method: self.by_method.get(method..method + self.words).unwrap_or_default(),
            by_byte: self.by_byte.get(byte..byte + self.words).unwrap_or_default(),
            start: 0,
            bits: 0,
        }
    }
}

/// The code of all methods that are too long for a code of their own.
const LONG: u64 = u64::MAX;

/// Returns a number that is equal for equal methods, without regard to case: the length in the high
/// byte, and the letters as capitals in the other bytes. Different methods have different codes,
/// except that all methods of more than seven bytes have the code [`LONG`].
#[inline]
fn code_of(method: &str) -> u64 {
    let method = method.as_bytes();
    if method.len() > 7 {
        return LONG;
    }
    let letters =
        method.iter().fold(0, |code, byte| code << 8 | u64::from(byte.to_ascii_uppercase()));
    (method.len() as u64) << 56 | letters
}

/// An iterator over the indices of the rules that can match.
pub(super) struct Candidates<'i> {
    /// The words of the method's row that are not read yet. The field `by_byte` contains the unread
    /// words of the row for the path's first byte.
    by_method: &'i [u64],
    by_byte: &'i [u64],
    /// The index of the rule that the first unread bit represents.
    start: usize,
    /// The bits of the current word that are not read yet. A rule can match if its bit is set in
    /// both rows.
    bits: u64,
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            let (method, by_method) = self.by_method.split_first()?;
            let (byte, by_byte) = self.by_byte.split_first()?;
            (self.by_method, self.by_byte) = (by_method, by_byte);
            self.bits = method & byte;
            self.start += BITS;
        }
        let bit = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(self.start - BITS + bit)
    }
}

/// The number of bits in a word.
const BITS: usize = u64::BITS as usize;

/// Returns `count` rows of bits, numbered from 0. The row `n` has the bit of a rule set if
/// `is_in(rule, n)` returns true.
fn rows(rules: &[Rule], count: usize, is_in: impl Fn(&Rule, usize) -> bool) -> Vec<u64> {
    let words = rules.len().div_ceil(BITS);
    let mut rows = vec![0; count * words];
    for row in 0..count {
        for (index, rule) in rules.iter().enumerate() {
            if is_in(rule, row) {
                rows[row * words + index / BITS] |= 1 << (index % BITS);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::RequestAttributes;
    use crate::policy::{MatchMode, PathCase, PathOptions, Policy, RequestMatch};
    use alloc::format;

    const METHODS: [&str; 9] =
        ["GET", "get", "POST", "DELETE", "PURGE", "", "\0GET", "Proppatch", "PROPFIND"];
    const PATHS: [&str; 10] =
        ["/", "", "/a", "//a/b", "/A/b", "/%61", "/b", "/search/code", "/./s", "/\u{e9}"];
    const PATTERNS: [&str; 9] =
        ["/", "/**", "/*", "/{id}/b", "/a", "/a/**", "/search/**", "/b", "/\u{e9}"];

    /// Creates a rule for every pair of a method and a pattern, and rules without a method and a
    /// pattern. With so many rules, each row needs more than two words.
    fn policy(case: PathCase) -> Policy {
        let methods = [&[][..], &["GET"], &["POST", "DELETE"], &["PROPPATCH"]];
        let mut matches = Vec::new();
        for methods in methods.iter().chain(&methods) {
            let methods: Vec<Box<str>> = methods.iter().map(|name| (*name).into()).collect();
            matches.push(RequestMatch { methods: methods.clone(), ..RequestMatch::default() });
            for two in PATTERNS.windows(2) {
                for patterns in [&two[..1], two] {
                    let paths = patterns.iter().map(|one| PathPattern::parse(one).unwrap());
                    let (methods, paths) = (methods.clone(), paths.collect());
                    matches.push(RequestMatch { methods, paths, ..RequestMatch::default() });
                }
            }
        }
        assert!(matches.len() > 2 * BITS);
        let rule = |(index, matches)| Rule::new(format!("{index}"), matches, Vec::new());
        let rules = matches.into_iter().enumerate().map(rule).collect();
        let policy = Policy::new(Vec::new(), Vec::new(), rules, MatchMode::AllMatches).unwrap();
        policy.with_paths(PathOptions { case, ..PathOptions::default() })
    }

    #[test]
    fn every_rule_that_matches_is_a_candidate() {
        for case in [PathCase::Exact, PathCase::Ignore] {
            let policy = policy(case);
            let mut left_out = 0;
            for (method, path) in METHODS.iter().flat_map(|method| PATHS.map(|path| (method, path)))
            {
                let attributes = RequestAttributes {
                    method,
                    path,
                    query: None,
                    host: None,
                    peer: None,
                    headers: &(),
                };
                let normal = NormalPath::with_options(path, policy.paths);
                let candidates: Vec<_> = policy.index.candidates(method, &normal).collect();
                assert!(candidates.is_sorted(), "{candidates:?}");
                for (index, rule) in policy.rules.iter().enumerate() {
                    let is_match = policy.first_mismatch(rule, &attributes).is_none();
                    let is_candidate = candidates.contains(&index);
                    assert!(is_candidate || !is_match, "{method} {path}: {:?}", rule.matches);
                    left_out += usize::from(!is_candidate);
                }
            }
            let compared = METHODS.len() * PATHS.len() * policy.rules.len();
            assert!(left_out * 3 > compared, "{left_out} of {compared}");
        }
    }

    #[test]
    fn a_policy_without_rules_has_no_candidates() {
        let path = NormalPath::new("/");
        assert_eq!(RuleIndex::default().candidates("GET", &path).count(), 0);
        assert_eq!(RuleIndex::new(&[]).candidates("GET", &path).count(), 0);
    }
}
