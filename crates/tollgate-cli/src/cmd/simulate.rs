//! `tollgate simulate`: computes how a policy would have decided the requests of access logs.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use tollgate_backend::memory_bounds;

use crate::failure::Failure;
use crate::limiter;
use crate::output::print;
use crate::output_file;
use crate::simulate::log::{FieldMap, Format, Input, Options};
use crate::simulate::progress::ProgressTarget;
use crate::simulate::report;
use crate::simulate::run::{self, Candidate, Plan};

/// Evaluate a policy on access logs, with the logs' own clock
///
/// Reads the common and combined formats of Apache and nginx, and JSON lines; plain or gzip. Lines
/// out of order are sorted, malformed ones are counted. Sends nothing over the network.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Another policy file, to compare with
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Write an HTML page with charts, which needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// The format of the logs; by default it is detected for each log
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<LogFormat>,
    /// The key of a field in JSON lines, such as time=ts or header.x-api-key=key
    #[arg(long = "field", value_name = "NAME=KEY")]
    fields: Vec<String>,
    /// The number of subjects to show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    top: u16,
    /// The logs; - is standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
}

/// A log format, as the flag names it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LogFormat {
    /// host, ident, user, time, request, status, size
    Common,
    /// common, then referer and user agent
    Combined,
    /// one JSON object per line
    Json,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Common => Self::Common,
            LogFormat::Combined => Self::Combined,
            LogFormat::Json => Self::Json,
        }
    }
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    if let Some(path) = &flags.report {
        let policies = || std::iter::once(&flags.policy).chain(&flags.compare);
        let included: Vec<PathBuf> = policies().flat_map(|policy| named_files(policy)).collect();
        let inputs = policies().chain(&included).chain(&flags.logs);
        output_file::check_is_no_input(path, "--report", inputs)?;
    }
    let plan = plan(flags)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let simulation = runtime.block_on(run::run(plan))?;
    if let Some(path) = &flags.report {
        let page = report::html::render(&simulation);
        output_file::write(path, &page)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let text = if flags.json {
        format!("{}\n", serde_json::to_string_pretty(&simulation)?)
    } else {
        report::table::render(&simulation)
    };
    print(&text)
}

/// Returns the files to which the policy file `policy` refers. Returns no files if `policy` cannot
/// be read, which is reported later, or if `policy` is no regular file. A pipe can be read only
/// once, and is read when the policy is loaded.
fn named_files(policy: &Path) -> Vec<PathBuf> {
    if !policy.is_file() {
        return Vec::new();
    }
    let bytes = tollgate_policy::read(policy).unwrap_or_default();
    tollgate_policy::named_files(policy, &bytes)
}

fn plan(flags: &Flags) -> Result<Plan, Failure> {
    let fields = field_map(&flags.fields);
    Ok(Plan {
        inputs: flags.logs.iter().cloned().map(Input::from).collect(),
        options: Options { format: flags.format.map(Format::from), fields, ..Options::default() },
        policy: candidate(&flags.policy)?,
        compare: flags.compare.as_deref().map(candidate).transpose()?,
        top: usize::from(flags.top),
        watcher: ProgressTarget::Terminal,
    })
}

/// Returns the fields that `--field` names. A mistake in the flag ends the program with an error of
/// the command line.
pub(super) fn field_map(fields: &[String]) -> FieldMap {
    FieldMap::new(fields.iter().map(String::as_str)).unwrap_or_else(|error| {
        clap::Error::raw(ErrorKind::ValueValidation, format!("--field: {error}\n")).exit()
    })
}

fn candidate(path: &Path) -> Result<Candidate, Failure> {
    let loaded = limiter::load(path)?;
    let bounds = memory_bounds(loaded.settings.store.memory());
    Ok(Candidate { name: path.display().to_string(), policy: loaded.policy, bounds })
}
