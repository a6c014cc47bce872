//! `tollgate-chaos`: tests limits on this machine while servers, networks and clocks fail. The
//! program starts real servers and real limiters that use the servers, makes the servers fail, and
//! checks the recorded history.

mod error;
mod excess;
mod finding;
mod fleet;
mod latency;
mod load;
mod memcached;
mod network;
mod nodes;
mod policy;
mod process;
mod question;
mod report;
mod run;
mod scenarios;
mod server;
mod signals;
mod site;
mod trial;
mod wait;
mod world;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use scenarios::Scenario;
use site::{Length, Programs, Site};

/// Break servers on purpose and check what limits do
///
/// Starts its own servers on loopback ports in a temporary directory, charges them through two
/// nodes, makes them fail, and checks every answer that the callers received. Stops everything that
/// it started, also on Ctrl-C. Fails if a promise was broken or could not be tested.
#[derive(Debug, Parser)]
#[command(name = "tollgate-chaos", version, max_term_width = 100)]
struct Flags {
    /// Redis or Valkey server to start
    #[arg(long, value_name = "PATH", default_value = "redis-server")]
    redis_server: PathBuf,
    /// memcached server to start
    #[arg(long, value_name = "PATH", default_value = "memcached")]
    memcached: PathBuf,
    /// `tollgate` binary that serves in `changing-world`; the default is the one next to this
    /// program
    #[arg(long, value_name = "PATH")]
    tollgate: Option<PathBuf>,
    /// Server module to load into each Redis or Valkey server; leaves out the scenarios that do not
    /// concern it
    #[arg(long, value_name = "PATH")]
    module: Option<PathBuf>,
    /// Have the nodes store states in the tables of the module
    #[arg(long, requires = "module")]
    tables: bool,
    /// Run each scenario for about 3 s instead of 10, and report times without checking them
    #[arg(long)]
    quick: bool,
    /// Write a report: an HTML page if the name ends in .html, otherwise Markdown
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Scenarios to run; the default is all of them
    #[arg(value_name = "SCENARIO", value_enum)]
    scenarios: Vec<Scenario>,
}

fn main() -> ExitCode {
    match execute(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(flags: &Flags) -> Result<(), Box<dyn Error>> {
    let length = if flags.quick { Length::Quick } else { Length::Long };
    let programs = Programs {
        redis: flags.redis_server.clone(),
        memcached: flags.memcached.clone(),
        tollgate: flags.tollgate.clone().unwrap_or_else(default_program),
        module: flags.module.clone(),
    };
    if flags.tables {
        policy::use_tables();
    }
    let site = Site::new(programs, length)?;
    let applies = |it: &Scenario| it.applies(flags.module.is_some(), flags.tables);
    let scenarios = if flags.scenarios.is_empty() {
        Scenario::all().iter().copied().filter(applies).collect()
    } else {
        flags.scenarios.clone()
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let outcomes = runtime.block_on(async {
        let shutdown_requested = signals::shutdown_requested()?;
        tokio::select! {
            outcomes = run::run(&site, &scenarios, |outcome| println!("{}", report::line(outcome))) => Ok(outcomes),
            // When a scenario is dropped, the servers that the scenario started end.
            () = shutdown_requested => Err(Box::<dyn Error>::from("interrupted: the remaining scenarios did not run")),
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

/// Returns the `tollgate` binary next to this program, or the name for a lookup in `PATH`.
fn default_program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name("tollgate"));
    beside.filter(|program| program.is_file()).unwrap_or_else(|| PathBuf::from("tollgate"))
}

fn write(path: &Path, outcomes: &[run::Outcome]) -> Result<(), Box<dyn Error>> {
    let is_page = path.extension().is_some_and(|extension| extension == "html");
    let text = if is_page { report::page(outcomes) } else { report::markdown(outcomes) };
    fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
