//! Files with lists of networks, to which policies refer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate_core::Policy;
use tollgate_core::policy::{Network, NetworkList, NetworkSet};

use crate::decode::{Spanned, Text, quoted};
use crate::files::{FileSource, Files, MAX_NETWORKS};
use crate::report::Report;

/// The maximum size in bytes of a file with networks: 64 MiB.
pub const MAX_NETWORK_FILE_BYTES: u64 = 64 << 20;

/// A file that contains a list of networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFile {
    /// The name of the list in the policy.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
}

impl Files<'_> {
    /// Returns the list of networks `name` from the file `given`, or `None` after reporting a
    /// mistake.
    pub(crate) fn list(
        &mut self,
        name: &str,
        given: &Spanned<Text>,
        report: &mut Report<'_>,
    ) -> Option<Arc<NetworkList>> {
        let directory = match self.source {
            FileSource::Directory(directory) => directory,
            FileSource::Policy(policy) => {
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
            FileSource::Nowhere => {
                let message = "files are only read for a policy that is a file itself";
                report.error(given.at, message, "write the networks as a list");
                return None;
            }
        };
        let (path, text) = self.text(directory, given, MAX_NETWORK_FILE_BYTES, report)?;
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
        let (mut networks, mut is_complete) = (Vec::new(), true);
        for (index, line) in text.lines().enumerate() {
            let entry = line.split(['#', ';']).next().unwrap_or_default();
            let network = entry.trim();
            if network.is_empty() {
                continue;
            }
            let Some(left) = self.networks_left.checked_sub(1) else {
                let message = format_args!("more than {MAX_NETWORKS} networks in files");
                report.error(given.at, message, "merge adjacent networks into larger ones");
                return None;
            };
            self.networks_left = left;
            match Network::parse(network) {
                Ok(network) => networks.push(network),
                Err(error) => {
                    let before = entry.len() - entry.trim_start().len();
                    report.error_in_file(&file, index + 1, line, (before, network), error);
                    is_complete = false;
                }
            }
        }
        is_complete.then(|| NetworkSet::new(networks))
    }
}

/// Returns the list of networks with the name `name`, if a rule of `policy` uses it.
fn list_of(policy: &Policy, name: &str) -> Option<Arc<NetworkList>> {
    let lists = policy.rules().iter().flat_map(|rule| rule.matches.network_lists());
    lists.into_iter().find(|list| list.is_named && *list.name == *name).cloned()
}
