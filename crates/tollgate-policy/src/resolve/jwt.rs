//! Converts the key `jwt` to a reader of the claims of tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate_core::Policy;
use tollgate_core::policy::{ClaimReader, ClaimSource, Dimension, SubjectSource};
use tollgate_jwt::{Algorithm, Expected, Keys, MAX_KEY_FILE_BYTES, Verifier};

use super::field_name::{field_name, is_token};
use crate::decode::{Field, Flag, Spanned, Text, quoted};
use crate::files::{FileSource, Files};
use crate::raw::{Jwt, PolicyFile};
use crate::report::Report;
use crate::token::TokenReader;

/// The largest tolerated difference of clocks, in milliseconds.
const MAX_LEEWAY: u64 = 600_000;

/// The default tolerated difference of clocks, in seconds.
const LEEWAY: u64 = 30;

/// Where a request contains the token (JWT), and how its claims are read.
pub(super) enum TokenSource {
    /// The file has no `jwt`.
    Absent,
    /// The value of `jwt` has a mistake, which is already reported.
    Invalid,
    /// The part of a request that contains the token, and the reader of the token's claims.
    Claim(SubjectSource, Arc<dyn ClaimReader>),
}

impl TokenSource {
    /// Creates the source from the key `jwt` of `file`. The keys that verify tokens are read from
    /// `files`. Mistakes are reported.
    pub(super) fn new(file: &PolicyFile, files: &mut Files<'_>, report: &mut Report<'_>) -> Self {
        let tokens = match &file.jwt {
            Field::Absent => return Self::Absent,
            Field::Invalid => return Self::Invalid,
            Field::Value(tokens) => tokens,
        };
        let source = token_source(&tokens.value, report);
        match (source, reader(tokens, files, report)) {
            (Some(source), Some(reader)) => Self::Claim(source, reader),
            _ => Self::Invalid,
        }
    }

    /// Returns the source of a claim. `given` is the name of the claim, or a JSON pointer to it.
    /// Returns `None` after reporting a mistake.
    pub(super) fn claim(
        &self,
        given: &Spanned<Text>,
        report: &mut Report<'_>,
    ) -> Option<SubjectSource> {
        let path = path(given, report)?;
        match self {
            Self::Absent => {
                let message = format_args!("the claim {} of which tokens?", quoted(&given.value.0));
                let hint = "add `jwt: { keys: FILE }`, the keys that tokens are signed by";
                report.error(given.key, message, hint);
                None
            }
            Self::Invalid => None,
            Self::Claim(token, reader) => {
                let (token, reader) = (Box::new(token.clone()), Arc::clone(reader));
                Some(SubjectSource::Claim(ClaimSource { token, path, reader }))
            }
        }
    }
}

/// Returns the member names that lead to the claim `given`, the outermost first. Returns `None`
/// after reporting a mistake.
fn path(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Vec<Box<str>>> {
    let text = &*given.value.0;
    if !text.starts_with('/') {
        return Some(vec![text.into()]);
    }
    super::pointer::pointer(given, report)?;
    let unescaped = |name: &str| name.replace("~1", "/").replace("~0", "~").into();
    Some(text.split('/').skip(1).map(unescaped).collect())
}

/// Returns the header or the cookie of a request that contains the token. Returns `None` after
/// reporting a mistake.
fn token_source(tokens: &Jwt, report: &mut Report<'_>) -> Option<SubjectSource> {
    if let (Some(_), Some(cookie)) = (tokens.header.given(), tokens.cookie.given()) {
        let hint = "a token is in one place: keep one of the two";
        report.error(cookie.key, "`jwt` has both `header` and `cookie`", hint);
        return None;
    }
    if let Some(cookie) = tokens.cookie.given() {
        is_token(&cookie.value.0, cookie.at, "cookie", report)?;
        return Some(SubjectSource::Cookie { cookie: cookie.value.0.as_str().into() });
    }
    let header = match &tokens.header {
        Field::Absent => "authorization".into(),
        Field::Invalid => return None,
        Field::Value(header) => field_name(header, "header", report)?,
    };
    Some(SubjectSource::Credential { header })
}

/// Returns the reader of the claims of `tokens`, or `None` after reporting a mistake.
fn reader(
    tokens: &Spanned<Jwt>,
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<Arc<dyn ClaimReader>> {
    let Jwt { keys, unverified, .. } = &tokens.value;
    let expected = expected(&tokens.value, report);
    let is_unverified = unverified.value().is_some_and(|Flag(unverified)| *unverified);
    let Some(keys) = keys.given() else {
        return match is_unverified {
            true => Some(unverified_reader(expected?)),
            false if keys.is_invalid() || unverified.is_invalid() => None,
            false => {
                let hint =
                    "`keys: jwks.json` verifies tokens; `unverified: true` accepts forged ones";
                report.error(tokens.key, "tokens need `keys`", hint);
                None
            }
        };
    };
    if is_unverified {
        let hint = "remove `unverified` to verify tokens with the keys";
        report.error(keys.key, "`keys` are not used if tokens are unverified", hint);
        return None;
    }
    let algorithms = accepted_algorithms(&tokens.value, report)?;
    let directory = match files.source {
        FileSource::Directory(directory) => directory,
        FileSource::Policy(policy) => {
            let reader = reader_of(policy);
            if reader.is_none() {
                let message = "the policy in force has no tokens, whose keys could be used here";
                report.error(keys.at, message, "remove `jwt`, and the claims");
            }
            return reader;
        }
        FileSource::Nowhere => {
            let message = "files are only read for a policy that is a file itself";
            report.error(keys.at, message, "write the policy to a file beside its keys");
            return None;
        }
    };
    let (found, text) = keys_in_file(directory, keys, &algorithms, files, report)?;
    let expected = expected?;
    let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
    let signed = format!("signed with {} by a key of {}", names.join(", "), keys.value.0);
    let description = format!("{signed}{}", description(&expected));
    match Verifier::new(found, algorithms, expected) {
        Ok(verifier) => Some(Arc::new(TokenReader::new(verifier, description, Some(&text)))),
        Err(error) => {
            report.plain_error(keys.at, error);
            None
        }
    }
}

/// Returns the algorithms with which an accepted token can be signed, or `None` after reporting a
/// mistake.
fn accepted_algorithms(tokens: &Jwt, report: &mut Report<'_>) -> Option<Vec<Algorithm>> {
    match &tokens.algorithms {
        Field::Absent => Some(Algorithm::PUBLIC.to_vec()),
        Field::Invalid => None,
        Field::Value(given) if given.value.0.is_empty() => {
            // The list of algorithms is also empty if none of its words is an algorithm. Those
            // words are already reported.
            if report.is_clean() {
                report.error(given.at, "no algorithm is accepted", "such as [RS256, ES256]");
            }
            None
        }
        Field::Value(given) => Some(given.value.0.iter().map(|one| one.value.0).collect()),
    }
}

/// Reads the keys that verify tokens from the file `keys`, which is relative to `directory`.
/// Returns the keys and the text of the file. Returns `None` after reporting a mistake, such as that
/// no key fits one of `algorithms`.
fn keys_in_file(
    directory: &Path,
    keys: &Spanned<Text>,
    algorithms: &[Algorithm],
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<(Keys, String)> {
    let (path, text) = files.text(directory, keys, MAX_KEY_FILE_BYTES, report)?;
    let message = format_args!("{} has no usable keys", path.display());
    let found = Keys::read(&text).map_err(|error| report.error(keys.at, message, error)).ok()?;
    if !found.fit(algorithms) {
        let message = format_args!("no key of {} fits the algorithms", path.display());
        let hint =
            "shared secrets need `algorithms: HS256`, other keys the algorithm of their kind";
        report.error(keys.at, message, hint);
        return None;
    }
    Some((found, text))
}

fn unverified_reader(expected: Expected) -> Arc<dyn ClaimReader> {
    let description = format!("not verified{}", description(&expected));
    Arc::new(TokenReader::new(Verifier::unverified(expected), description, None))
}

/// Returns a description of the values that the claims of an accepted token must have.
fn description(expected: &Expected) -> String {
    let named = |what: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(", {what} {value}")).unwrap_or_default()
    };
    let (issuer, audience) = (named("by", &expected.issuer), named("for", &expected.audience));
    format!("{issuer}{audience}, with a tolerance of {} s", expected.leeway)
}

fn expected(tokens: &Jwt, report: &mut Report<'_>) -> Option<Expected> {
    let text = |field: &Field<Text>| field.or_default(|text| Some(text.0.clone()), None);
    let leeway = match tokens.leeway.given() {
        None => tokens.leeway.is_absent().then_some(LEEWAY)?,
        Some(given) if given.value.0.get() > MAX_LEEWAY => {
            let hint = "expected at most 10m: expired tokens are accepted for this time";
            report.error(given.at, format_args!("a leeway of {}", given.value.0), hint);
            return None;
        }
        Some(given) if given.value.0.get() % 1_000 != 0 => {
            report.plain_error(given.at, "a leeway has whole seconds");
            return None;
        }
        Some(given) => given.value.0.get() / 1_000,
    };
    Some(Expected { issuer: text(&tokens.issuer)?, audience: text(&tokens.audience)?, leeway })
}

/// Returns the reader of claims that a subject of `policy` uses, if there is one.
fn reader_of(policy: &Policy) -> Option<Arc<dyn ClaimReader>> {
    fn of(dimension: &Dimension) -> Option<&Arc<dyn ClaimReader>> {
        match &dimension.source {
            SubjectSource::Claim(claim) => Some(&claim.reader),
            _ => None,
        }
    }
    policy.dimensions().iter().find_map(of).map(Arc::clone)
}

/// Warns of a key `jwt` that has no effect, because no subject reads a claim.
pub(super) fn warn_if_unused(file: &PolicyFile, dimensions: &[Dimension], report: &mut Report<'_>) {
    let is_used = |one: &Dimension| matches!(one.source, SubjectSource::Claim(_));
    if let Some(tokens) = file.jwt.given()
        && !dimensions.iter().any(is_used)
    {
        let hint = "add a subject such as `user: { claim: sub }`";
        report.warning(tokens.key, "no subject is a claim of the tokens", hint);
    }
}

/// Returns the path of the file with the keys that verify tokens, if `file` names one.
pub(crate) fn key_file(file: &PolicyFile) -> Option<PathBuf> {
    Some(PathBuf::from(&file.jwt.value()?.keys.value()?.0))
}
