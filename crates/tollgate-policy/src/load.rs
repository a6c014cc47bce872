//! Loads policy files: reads, parses and checks them.

use std::fmt;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;
use tollgate_core::Policy;

use crate::decode::{Decode, OneOrMore};
use crate::files::{FileSource, Files, MAX_FILE_BYTES};
use crate::finding::{Finding, PolicyErrors};
use crate::network_file::NetworkFile;
use crate::report::Report;
use crate::settings::Settings;
use crate::span::Span;
use crate::tree::document;
use crate::{include, raw, resolve};

/// The content of a policy file that was loaded and has no mistakes.
#[derive(Clone, Debug)]
pub struct LoadedPolicy {
    /// The policy: the subjects, the limits and the rules.
    pub policy: Policy,
    /// The settings of the deployment, which do not affect which requests are charged.
    pub settings: Settings,
    /// The version of the policy: the first 12 hexadecimal digits of a hash of the file's text. If
    /// the file names other files, the hash includes their content. The version is the same on
    /// every node that loaded the same content.
    pub version: String,
    /// The files from which the policy read lists of networks.
    pub network_files: Vec<NetworkFile>,
    /// Warnings about settings of the file that work, but probably not as intended.
    pub warnings: Vec<Finding>,
}

/// The reason why a policy file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is not valid UTF-8.
    NotUtf8 {
        /// The path of the file.
        path: PathBuf,
        /// The number of bytes at the start of the file that are valid UTF-8.
        valid_up_to: usize,
    },
    /// The file has mistakes.
    Invalid(PolicyErrors),
}

/// Reads and checks the policy file at `path`. The file can have at most [`MAX_FILE_BYTES`] bytes.
///
/// # Errors
/// [`LoadError`]: the file cannot be read, or has mistakes.
pub fn load(path: &Path) -> Result<LoadedPolicy, LoadError> {
    let bytes = read(path).map_err(|error| LoadError::Io { path: path.to_owned(), error })?;
    load_bytes(path, bytes)
}

/// Reads the bytes of the policy file at `path`, but not more than [`MAX_FILE_BYTES`] `+ 1` bytes.
/// If the result is longer than [`MAX_FILE_BYTES`], the file is too large, and [`load_bytes`]
/// reports that.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Parses and checks the policy file at `path`. `bytes` is its content, as [`read`](read()) returns
/// it.
///
/// # Errors
/// [`LoadError`] if the file is not valid UTF-8 or has mistakes.
pub fn load_bytes(path: &Path, bytes: Vec<u8>) -> Result<LoadedPolicy, LoadError> {
    let name = path.display().to_string();
    // If a large file is cut at the maximum size, its last character can be incomplete. That is not
    // reported as invalid UTF-8.
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
    let source = FileSource::Directory(directory(path));
    parse_with(&name, &text, source).map_err(LoadError::Invalid)
}

/// Returns the directory of the policy file at `path`. Paths in the policy file are relative to
/// this directory.
fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new(""))
}

/// Returns the paths of the files to which a policy file refers: the included files, the files with
/// networks, and the files with keys of tokens. `path` is the path of the policy file, and `bytes`
/// is its content. The result is complete even if the policy file has mistakes.
#[must_use]
pub fn named_files(path: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
    let names_files = ["include", "networks", "jwt"].iter().any(|key| text.contains(key));
    if bytes.len() > MAX_FILE_BYTES || !names_files {
        return Vec::new();
    }
    let mut report = Report::new("", text);
    let Some(document) = document(text, &mut report) else { return Vec::new() };
    let mut files = Files::new(FileSource::Directory(directory(path)));
    let all = include::merged(document.clone(), &mut files, &mut report).unwrap_or(document);
    let Some(file) = raw::PolicyFile::decode(&all, &mut report) else { return Vec::new() };
    let included = file.include.value().map_or(&[][..], |OneOrMore(included)| included);
    let included = included.iter().map(|file| PathBuf::from(&file.value.0));
    let networks = resolve::networks::files(&file).into_iter().map(|file| file.path);
    let named = included.chain(networks).chain(resolve::jwt::key_file(&file));
    named.map(|file| directory(path).join(file)).collect()
}

/// Parses and checks the `text` of a policy file. `name` is the name of the file in messages. The
/// text cannot refer to files.
///
/// # Errors
/// All mistakes in the text.
pub fn parse(name: &str, text: &str) -> Result<LoadedPolicy, PolicyErrors> {
    parse_with(name, text, FileSource::Nowhere)
}

/// Parses the text of a policy that is to be compared with the policy `current`. No file is read.
/// In place of a file with networks, the list with the same name in `current` is used. The claims
/// of tokens are read by the reader of `current`.
///
/// # Errors
/// All mistakes in the text.
pub fn parse_relative_to(
    current: &Policy,
    name: &str,
    text: &str,
) -> Result<LoadedPolicy, PolicyErrors> {
    parse_with(name, text, FileSource::Policy(current))
}

fn parse_with(
    name: &str,
    text: &str,
    source: FileSource<'_>,
) -> Result<LoadedPolicy, PolicyErrors> {
    let mut report = Report::new(name, text);
    let mut files = Files::new(source);
    let resolved = parse_and_resolve(text, &mut files, &mut report);
    let warnings = report.finish()?;
    let Some((policy, settings, network_files)) = resolved else {
        // Code that returns `None` has reported a mistake. If no mistake is reported because of a
        // defect, the file must still be refused.
        let mut report = Report::new(name, text);
        report.plain_error(Span::START, "not a policy");
        return Err(report.into_errors());
    };
    let version = version(text, files.content_hash());
    Ok(LoadedPolicy { policy, settings, version, network_files, warnings })
}

/// Returns the version of a policy: a hash of its text and of `content_hash`, which is the hash of
/// the files that the policy names. The hash is not cryptographic: two texts with the same hash can
/// be constructed on purpose.
fn version(text: &str, content_hash: Option<u64>) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(text.as_bytes());
    if let Some(hash) = content_hash {
        hasher.write_u64(hash);
    }
    let hash = hasher.finish();
    format!("{:012x}", hash >> 16)
}

/// Parses `text` and converts it to a policy. Returns `None` after reporting a mistake.
fn parse_and_resolve(
    text: &str,
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<(Policy, Settings, Vec<NetworkFile>)> {
    if text.len() > MAX_FILE_BYTES {
        let message = format_args!("the file is larger than {MAX_FILE_BYTES} bytes");
        report.plain_error(Span::START, message);
        return None;
    }
    let document = include::merged(document(text, report)?, files, report)?;
    let file = raw::PolicyFile::decode(&document, report)?;
    let (policy, settings) = resolve::resolve(&file, files, report)?;
    Some((policy, settings, resolve::networks::files(&file)))
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => {
                write!(f, "cannot read the policy file {}: {error}", path.display())?;
                match error.kind() {
                    io::ErrorKind::NotFound => f.write_str(
                        "; check the path, or write a first policy with `tollgate suggest`",
                    ),
                    io::ErrorKind::PermissionDenied => {
                        f.write_str("; let the user that runs this process read the file")
                    }
                    _ => Ok(()),
                }
            }
            Self::NotUtf8 { path, valid_up_to } => write!(
                f,
                "the policy file {} is not UTF-8 text: byte {valid_up_to} is invalid",
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
