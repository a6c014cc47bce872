//! `tollgate suggest`: proposes quotas from access logs, and a policy to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cmd::simulate::{LogFormat, field_map};
use crate::failure::Failure;
use crate::output::{note, print};
use crate::simulate::log::{Format, Input, Options};
use crate::suggest::proposal::{Task, propose};
use crate::suggest::report;
use crate::suggest::share::RefusedShare;
use crate::suggest::subject::{Dimension, Window};

/// Propose quotas from access logs, and write a policy to start from
///
/// Counts the requests of every client in every window, shows what different quotas would have
/// refused, and simulates the proposed policy on the same logs. Reads the same formats as `tollgate
/// simulate`. Sends nothing over the network.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// What the quotas are for: address, user (of the log), or header:NAME (see --field)
    #[arg(long, value_name = "SUBJECT", default_value = "address")]
    per: Dimension,
    /// The length of a window, such as 1m; can be repeated
    #[arg(long = "window", value_name = "DURATION", default_values = ["1m", "1h"])]
    windows: Vec<Window>,
    /// The share of clients that each limit may refuse at least once
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    clients: RefusedShare,
    /// The share of requests that each limit may refuse
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    requests: RefusedShare,
    /// Write the policy to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The format of the logs; by default it is detected for each log
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<LogFormat>,
    /// The key of a field in JSON lines, such as time=ts or header.x-api-key=key
    #[arg(long = "field", value_name = "NAME=KEY")]
    fields: Vec<String>,
    /// The logs; - is standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let fields = field_map(&flags.fields);
    let task = Task {
        inputs: flags.logs.iter().cloned().map(Input::from).collect(),
        options: Options { format: flags.format.map(Format::from), fields, ..Options::default() },
        per: flags.per.clone(),
        windows: flags.windows.clone(),
        subjects: flags.clients,
        requests: flags.requests,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let proposal = runtime.block_on(propose(task))?;
    if let Some(path) = &flags.write {
        write_new(path, &proposal.policy)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        note(&format!("{}: the proposed policy\n", path.display()));
    }
    print(&if flags.json {
        format!("{}\n", serde_json::to_string_pretty(&proposal)?)
    } else {
        report::render(&proposal)
    })
}

/// Writes a new file. If the file exists already, returns an error, so a policy in use is never
/// replaced.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::from("it exists; name another file"),
        _ => error.into(),
    })?;
    Ok(file.write_all(text.as_bytes())?)
}
