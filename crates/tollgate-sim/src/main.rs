//! `tollgate-sim`: runs simulated clusters, and runs the cluster of a given seed again.

mod long_run;
mod sums;

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use tollgate_sim::plan::FIRST_OF_ALL;
use tollgate_sim::{Kind, Plan, run, shrink, trace};

use long_run::LongRun;

/// The allocator of the program. It is fast for the many small allocations of a run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run simulated clusters and check what limits do
///
/// Each seed is a world: nodes with the shipped limiter and Redis store, servers, a network, and
/// faults, in virtual time. The same seed runs the same world. Fails if a world breaks a bound.
#[derive(Debug, Parser)]
#[command(name = "tollgate-sim", version, max_term_width = 100)]
struct Flags {
    /// Seeds to run: a number of them from 4,194,304 on, where all kinds of worlds are, or a range
    /// such as `5000..10000`, which excludes its end
    #[arg(long, value_name = "SEEDS", default_value = "1000", value_parser = seeds)]
    seeds: Range<u64>,
    /// Append progress and failures to this file, and continue after the last seeds in the file
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    log: Option<PathBuf>,
    /// Run only the worlds of this kind, such as `failover`
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Run only this seed
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Print the events of the run; with `--seed`
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Write the events of the run as an HTML page; with `--seed`
    #[arg(long, value_name = "FILE", requires = "seed")]
    page: Option<PathBuf>,
    /// Remove the faults that a failure does not need first; with `--seed`
    #[arg(long, requires = "seed")]
    shrink: bool,
    /// Worlds that run at a time; the default is the number of processors
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
}

/// Parses a number of seeds, or a range of seeds.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    match text.split_once("..") {
        Some((start, end)) => Ok(number(start)?..number(end)?),
        None => Ok(FIRST_OF_ALL..FIRST_OF_ALL.saturating_add(number(text)?)),
    }
}

/// Parses the name of a kind of world.
fn kind(text: &str) -> Result<Kind, String> {
    let named = Kind::ALL.into_iter().find(|kind| kind.to_string() == text);
    named.ok_or_else(|| {
        let names: Vec<_> = Kind::ALL.iter().map(Kind::to_string).collect();
        format!("the kinds are {}", names.join(", "))
    })
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let flags = Flags::parse();
    let failed = match flags.seed {
        Some(seed) => replay(&flags, seed)?,
        None => run_all(&flags)?,
    };
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs the world of one seed. Returns whether the world failed.
fn replay(flags: &Flags, seed: u64) -> Result<bool, Box<dyn Error>> {
    let mut plan = Plan::of(seed);
    if flags.shrink && !run(&plan, false).violations.is_empty() {
        plan = shrink(&plan);
        let actions = plan.actions.iter();
        actions.for_each(|(at, action)| println!("needed after {at} ms: {action:?}"));
    }
    let outcome = run(&plan, flags.trace || flags.page.is_some());
    if flags.trace {
        print!("{}", trace::table(&outcome.events));
    }
    if let Some(file) = &flags.page {
        fs::write(file, trace::page(&format!("seed {seed}"), &outcome.events))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    println!("seed {seed}: {plan}");
    let figures = &outcome.figures;
    println!(
        "{} decisions, {} by nodes alone, the longest after {} ms, at most {} jobs in a queue, {} \
         rejected",
        figures.decisions,
        figures.by_nodes,
        figures.longest_wait,
        figures.longest_queue,
        figures.overloaded
    );
    outcome.violations.iter().for_each(|violation| println!("violation: {violation}"));
    Ok(!outcome.violations.is_empty())
}

/// Runs the worlds of many seeds. Returns whether a world failed.
fn run_all(flags: &Flags) -> Result<bool, Box<dyn Error>> {
    let parallel = thread::available_parallelism().map_or(1, usize::from);
    let threads = flags.threads.unwrap_or(parallel).max(1);
    let mut long_run = LongRun::open(flags.seeds.clone(), flags.log.as_deref())?;
    let sums = long_run.run(threads, flags.kind)?;
    sums.print();
    Ok(sums.has_failures())
}
