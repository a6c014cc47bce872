//! Converts the key `networks` to lists of networks. The networks are in the policy file or in
//! files of their own.

use std::path::PathBuf;
use std::sync::Arc;

use tollgate_core::policy::{Network, NetworkList, NetworkSet};

use super::names::NameTable;
use crate::decode::{Named, OneOrMore, Spanned, Text, quoted};
use crate::files::Files;
use crate::network_file::NetworkFile;
use crate::raw::{Networks, PolicyFile};
use crate::report::Report;

/// The lists of networks of a policy.
pub(super) struct NetworkTable<'f> {
    names: NameTable<'f, Networks>,
    /// The lists in file order. An element is `None` if the list has a mistake, which is reported.
    lists: Vec<Option<Arc<NetworkList>>>,
}

impl<'f> NetworkTable<'f> {
    /// Creates the lists of networks of `file`. The files of the lists are read from `files`.
    /// Mistakes are reported.
    pub(super) fn new(
        file: &'f PolicyFile,
        files: &mut Files<'_>,
        report: &mut Report<'_>,
    ) -> Self {
        let names = NameTable::new(&file.networks, "network");
        let lists = names.all().iter().map(|named| list(named, files, report)).collect();
        Self { names, lists }
    }

    /// Returns the lists of networks that a condition uses. The networks and addresses in the
    /// condition itself form the first list. The named lists follow. Returns `None` after reporting
    /// a mistake.
    pub(super) fn of_condition(
        &mut self,
        given: &OneOrMore<Text>,
        report: &mut Report<'_>,
    ) -> Option<Vec<Arc<NetworkList>>> {
        let (mut own, mut texts, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_complete = true;
        for one in &given.0 {
            let text = &*one.value.0;
            match Network::parse(text) {
                Ok(network) => {
                    own.push(network);
                    texts.push(text);
                }
                Err(_) if self.is_meant_as_network(text) => {
                    network(one, report);
                    is_complete = false;
                }
                Err(_) => match self.names.index(text, one.at, report) {
                    Some(index) => lists.extend(self.lists[index].clone()),
                    None => is_complete = false,
                },
            }
        }
        if !own.is_empty() {
            let networks = NetworkSet::new(own);
            let name = summary(&texts).into();
            lists.insert(0, Arc::new(NetworkList { name, is_named: false, networks }));
        }
        is_complete.then_some(lists)
    }

    /// Returns whether the author probably meant `text` as a network and not as the name of a list.
    /// `text` is not a valid network.
    fn is_meant_as_network(&mut self, text: &str) -> bool {
        let is_numeric = |text: &str| text.bytes().all(|byte| b"0123456789.-".contains(&byte));
        text.contains(['/', ':', '*']) || is_numeric(text) && self.names.known(text).is_none()
    }

    /// Warns of lists that no rule uses.
    pub(super) fn warn_of_unused(&self, report: &mut Report<'_>) {
        for name in self.names.unused() {
            let message = format_args!("no rule uses the networks {}", quoted(&name.value));
            report.warning(name.at, message, "name them in the `network` of a rule's `match`");
        }
    }
}

/// Returns up to three of `texts`, followed by the number of the other texts, for a message.
fn summary(texts: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown = texts.iter().take(SHOWN).copied().collect::<Vec<_>>().join(" or ");
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} or {more} more"),
    }
}

fn list(
    named: &Named<Networks>,
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<Arc<NetworkList>> {
    let name = &named.name;
    if Network::parse(&name.value).is_ok() {
        let message = format_args!("a list of networks has the name of an address, {}", name.value);
        report.error(name.at, message, "choose another name, such as office");
        return None;
    }
    let networks = match named.value.as_ref()? {
        Networks::Listed(listed) => {
            let all: Vec<_> = listed.iter().map(|one| network(one, report)).collect();
            NetworkSet::new(all.into_iter().collect::<Option<Vec<_>>>()?)
        }
        Networks::File(file) => return files.list(&name.value, file.file.given()?, report),
    };
    if networks.ranges() == 0 {
        report.warning(name.at, "the list has no networks", "no client is in it");
    }
    Some(Arc::new(NetworkList { name: name.value.as_str().into(), is_named: true, networks }))
}

fn network(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<Network> {
    let parsed = Network::parse(&given.value.0);
    let message = format_args!("{} is not a network", quoted(&given.value.0));
    parsed.map_err(|error| report.error(given.at, message, error)).ok()
}

/// Returns the files with lists of networks to which the policy `file` refers.
pub(crate) fn files(file: &PolicyFile) -> Vec<NetworkFile> {
    let named = file.networks.value().map_or(&[][..], |names| &names.0);
    let one = |named: &Named<Networks>| match named.value.as_ref()? {
        Networks::File(file) => Some(NetworkFile {
            name: named.name.value.clone(),
            path: PathBuf::from(&file.file.value()?.0),
        }),
        Networks::Listed(_) => None,
    };
    named.iter().filter_map(one).collect()
}
