//! Files with networks, which policies refer to.

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siphasher::sip::SipHasher13;
use tollgate_core::Policy;
use tollgate_core::policy::{Network, NetworkList, NetworkSet};

use crate::decode::{Spanned, Text, quoted};
use crate::report::Report;

/// The largest file of networks: 64 MiB.
pub const MAX_NETWORK_FILE_BYTES: u64 = 64 << 20;

/// The most networks in all files of a policy. They take at most 32 MB of memory in the policy,
/// and the same again while a reload replaces it.
pub const MAX_NETWORKS: usize = 1_000_000;

/// A file that contains a list of networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFile {
    /// The name of the list in the policy.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
}

/// Where the lists of networks that a policy keeps in files are taken from.
pub(crate) struct NetworkFiles<'a> {
    source: NetworkSource<'a>,
    /// The number of networks that can still be read.
    left: usize,
    hash: SipHasher13,
    is_any_read: bool,
}

/// The source of lists that are in files.
#[derive(Clone, Copy)]
pub(crate) enum NetworkSource<'a> {
    /// The files, relative to this directory.
    Directory(&'a Path),
    /// The lists with the same names in this policy.
    Policy(&'a Policy),
    /// None: such a list is a mistake.
    Nowhere,
}

impl<'a> NetworkFiles<'a> {
    pub(crate) fn new(source: NetworkSource<'a>) -> Self {
        Self { source, left: MAX_NETWORKS, hash: SipHasher13::new(), is_any_read: false }
    }

    /// Returns a hash of the content of all files that were read, if there are any.
    pub(crate) fn content_hash(&self) -> Option<u64> {
        self.is_any_read.then(|| self.hash.finish())
    }

    /// Returns the list `name` from the file `given`, or `None` after reporting a mistake.
    pub(crate) fn list(
        &mut self,
        name: &str,
        given: &Spanned<Text>,
        report: &mut Report<'_>,
    ) -> Option<Arc<NetworkList>> {
        let directory = match self.source {
            NetworkSource::Directory(directory) => directory,
            NetworkSource::Policy(policy) => {
                let list = list_of(policy, name);
                if list.is_none() {
                    let message = format_args!(
                        "the policy in force has no networks {} to use for this file",
                        quoted(name)
                    );
                    report.error(given.at, message, "write the networks as a list");
                }
                return list;
            }
            NetworkSource::Nowhere => {
                let message = "files are only read for a policy that is a file itself";
                report.error(given.at, message, "write the networks as a list");
                return None;
            }
        };
        let path = directory.join(&given.value.0);
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) => {
                let message = format_args!("cannot read {}: {error}", path.display());
                report.error(given.at, message, "the path is relative to the policy file");
                return None;
            }
        };
        self.hash.write(text.as_bytes());
        self.hash.write_u8(0xff);
        self.is_any_read = true;
        let networks = self.parse(&path, &text, given, report)?;
        if networks.ranges() == 0 {
            let message = format_args!("{} has no networks", path.display());
            report.warning(given.at, message, "no client is in this list");
        }
        Some(Arc::new(NetworkList { name: name.into(), is_named: true, networks }))
    }

    fn parse(
        &mut self,
        path: &Path,
        text: &str,
        given: &Spanned<Text>,
        report: &mut Report<'_>,
    ) -> Option<NetworkSet> {
        let file: Arc<str> = path.display().to_string().into();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mut networks, mut is_whole) = (Vec::new(), true);
        for (index, line) in text.lines().enumerate() {
            let entry = line.split(['#', ';']).next().unwrap_or_default();
            let network = entry.trim();
            if network.is_empty() {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else {
                let message = format_args!("more than {MAX_NETWORKS} networks in files");
                report.error(given.at, message, "merge adjacent networks into larger ones");
                return None;
            };
            self.left = left;
            match Network::parse(network) {
                Ok(network) => networks.push(network),
                Err(error) => {
                    let before = entry.len() - entry.trim_start().len();
                    report.error_in_file(&file, index + 1, line, (before, network), error);
                    is_whole = false;
                }
            }
        }
        is_whole.then(|| NetworkSet::new(networks))
    }
}

/// Returns the list `name` that a rule of `policy` uses.
fn list_of(policy: &Policy, name: &str) -> Option<Arc<NetworkList>> {
    let lists = policy.rules().iter().flat_map(|rule| rule.matches.network_lists());
    lists.into_iter().find(|list| list.is_named && *list.name == *name).cloned()
}

fn read(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_NETWORK_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_NETWORK_FILE_BYTES {
        let message = format!("the file is larger than {MAX_NETWORK_FILE_BYTES} bytes");
        return Err(io::Error::other(message));
    }
    Ok(text)
}
