//! From a file, or its text, to a policy.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;
use tollgate_core::Policy;

use crate::decode::Decode;
use crate::finding::{Finding, PolicyErrors};
use crate::report::Report;
use crate::settings::Settings;
use crate::span::Span;
use crate::tree::document;
use crate::{raw, resolve};

/// The largest file that is read: 1 MiB.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// A policy file that can be used.
#[derive(Clone, Debug)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Policy,
    /// What the file says beside it.
    pub settings: Settings,
    /// Which file this is: the first 12 hexadecimal digits of a hash of its text, the same on
    /// every node that loaded the same text.
    pub version: String,
    /// What works, but hardly as it was meant.
    pub warnings: Vec<Finding>,
}

/// Why a file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be read.
    Io {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not text.
    NotUtf8 {
        /// Its path.
        path: PathBuf,
        /// How many of its bytes are text.
        valid_up_to: usize,
    },
    /// It was read, and what it says is wrong.
    Invalid(PolicyErrors),
}

/// Reads the policy file at `path`, at most [`MAX_FILE_BYTES`] of it.
///
/// # Errors
/// [`LoadError`]: the file cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<LoadedPolicy, LoadError> {
    let bytes = read(path).map_err(|error| LoadError::Io { path: path.to_owned(), error })?;
    load_bytes(path, bytes)
}

/// The bytes of the policy file at `path`, at most one more than [`MAX_FILE_BYTES`]: that tells that
/// there are too many.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the policy file at `path` says, of which `bytes` were [read](read()).
///
/// # Errors
/// [`LoadError`]: all that is wrong with it.
pub fn load_bytes(path: &Path, bytes: Vec<u8>) -> Result<LoadedPolicy, LoadError> {
    let name = path.display().to_string();
    // The cut may go through a letter: that is no fault of the file's.
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.as_bytes().len() > MAX_FILE_BYTES => {
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
        Err(error) => {
            let valid_up_to = error.utf8_error().valid_up_to();
            return Err(LoadError::NotUtf8 { path: path.to_owned(), valid_up_to });
        }
    };
    parse(&name, &text).map_err(LoadError::Invalid)
}

/// Reads the policy `text` of a file that messages call `name`.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(name: &str, text: &str) -> Result<LoadedPolicy, PolicyErrors> {
    let mut report = Report::new(name, text);
    let resolved = parse_and_resolve(text, &mut report);
    let warnings = report.finish()?;
    let Some((policy, settings)) = resolved else {
        // Whoever gives up says why; should one forget, the file is not taken for good.
        let mut report = Report::new(name, text);
        let start = Span { line: 1, column: 1, width: 1 };
        report.plain_error(start, "this is not understood as a policy");
        return Err(report.into_errors());
    };
    Ok(LoadedPolicy { policy, settings, version: version(text), warnings })
}

/// No secret and no proof: it tells files apart that were not made to look alike.
fn version(text: &str) -> String {
    let hash = SipHasher13::new().hash(text.as_bytes());
    format!("{:012x}", hash >> 16)
}

/// The policy as meant; `None` if something is wrong, which is reported.
fn parse_and_resolve(text: &str, report: &mut Report<'_>) -> Option<(Policy, Settings)> {
    if text.len() > MAX_FILE_BYTES {
        let start = Span { line: 1, column: 1, width: 1 };
        let message = format_args!("the file is larger than {MAX_FILE_BYTES} bytes");
        report.plain_error(start, message);
        return None;
    }
    let document = document(text, report)?;
    let file = raw::PolicyFile::decode(&document, report)?;
    resolve::resolve(&file, report)
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => {
                write!(f, "cannot read the policy file {}: {error}", path.display())
            }
            Self::NotUtf8 { path, valid_up_to } => write!(
                f,
                "the policy file {} is not UTF-8 text: byte {valid_up_to} cannot be read",
                path.display()
            ),
            Self::Invalid(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::NotUtf8 { .. } | Self::Invalid(_) => None,
        }
    }
}
