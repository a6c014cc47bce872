//! `tollgate chaos`: what limits do while servers, networks and clocks fail, on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::chaos::{Length, Scenario, Site, report, run};
use crate::failure::Failure;
use crate::signals;

/// Break servers on purpose, and see what limits do
///
/// Starts servers of its own on loopback ports, in a directory of its own, charges them through two nodes, makes them
/// fail, and judges what every caller was told. Ends what it started, also on Ctrl-C. Fails if anything it promises
/// did not hold, or could not be shown.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The Redis or Valkey server to start
    #[arg(long, value_name = "PATH", default_value = "redis-server")]
    redis_server: PathBuf,
    /// The memcached to start
    #[arg(long, value_name = "PATH", default_value = "memcached")]
    memcached: PathBuf,
    /// Take some 3 s for each scenario instead of 10, and tell times without judging them
    #[arg(long)]
    quick: bool,
    /// Write a report: a page if the name ends in .html, else Markdown
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// What happens; everything if nothing is named
    #[arg(value_name = "SCENARIO", value_enum)]
    scenarios: Vec<Scenario>,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let length = if flags.quick { Length::Quick } else { Length::Long };
    let site = Site::new(flags.redis_server.clone(), flags.memcached.clone(), length)?;
    let scenarios =
        if flags.scenarios.is_empty() { Scenario::all() } else { flags.scenarios.as_slice() };
    let runtime = tokio::runtime::Runtime::new()?;
    let outcomes = runtime.block_on(async {
        let shutdown_requested = signals::shutdown_requested()?;
        tokio::select! {
            outcomes = run::run(&site, scenarios, |outcome| println!("{}", report::line(outcome))) => Ok(outcomes),
            // Servers end with the scenario that started them.
            () = shutdown_requested => Err(Failure::from("told to end: the scenarios that are left did not run")),
        }
    })?;
    if let Some(path) = &flags.report {
        write(path, &outcomes)?;
    }
    let summary = report::summary(&outcomes);
    if outcomes.iter().all(run::Outcome::is_held) {
        println!("{summary}");
        Ok(())
    } else {
        Err(summary.into())
    }
}

fn write(path: &Path, outcomes: &[run::Outcome]) -> Result<(), Failure> {
    let is_page = path.extension().is_some_and(|extension| extension == "html");
    let text = if is_page { report::page(outcomes) } else { report::markdown(outcomes) };
    fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
