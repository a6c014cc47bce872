//! `tollgate-sim`: runs simulated clusters, and runs the cluster of a given seed again.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use tollgate_sim::{Kind, Outcome, Plan, run, shrink, trace};

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
    /// Number of seeds to run
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    seeds: u64,
    /// First seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Run only the worlds of this kind, such as `failover`
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
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

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let flags = Flags::parse();
    let failed = match flags.seed {
        Some(seed) => replay(&flags, seed)?,
        None => run_all(&flags),
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
        "{} decisions, {} by nodes alone, the longest after {} ms",
        figures.decisions, figures.by_nodes, figures.longest_wait
    );
    outcome.violations.iter().for_each(|violation| println!("violation: {violation}"));
    Ok(!outcome.violations.is_empty())
}

/// Runs the worlds of many seeds. Returns whether a world failed.
fn run_all(flags: &Flags) -> bool {
    let parallel = thread::available_parallelism().map_or(1, usize::from);
    let threads = flags.threads.unwrap_or(parallel).max(1);
    let (next, end) = (AtomicU64::new(flags.from), flags.from.saturating_add(flags.seeds));
    let work = || {
        let mut sums = Sums::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return sums;
            }
            let plan = Plan::of(seed);
            if flags.kind.as_ref().is_some_and(|kind| *kind != plan.kind.to_string()) {
                continue;
            }
            let outcome = run(&plan, false);
            if !outcome.violations.is_empty() {
                print_failure(&plan, &outcome);
            }
            sums.add(plan.kind, &outcome);
        }
    };
    let sums = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let sums = workers.into_iter().map(|worker| worker.join().expect("a world ends"));
        sums.reduce(Sums::joined).unwrap_or_default()
    });
    sums.print();
    sums.0.values().any(|sum| sum.failed > 0)
}

fn print_failure(plan: &Plan, outcome: &Outcome) {
    let seed = plan.seed;
    println!("seed {seed}: {plan}");
    outcome.violations.iter().for_each(|violation| println!("  violation: {violation}"));
    println!("  replay: cargo run -p tollgate-sim -- --seed {seed} --trace");
}

/// The total results of the worlds of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    worlds: u64,
    failed: u64,
    decisions: u64,
    by_nodes: u64,
    longest_wait: u64,
    store_bound: u64,
    local_bound: u64,
}

/// The total results by the name of the kind of world.
#[derive(Debug, Default)]
struct Sums(BTreeMap<String, Sum>);

impl Sums {
    fn add(&mut self, kind: Kind, outcome: &Outcome) {
        let figures = &outcome.figures;
        let one = Sum {
            worlds: 1,
            failed: u64::from(!outcome.violations.is_empty()),
            decisions: figures.decisions,
            by_nodes: figures.by_nodes,
            longest_wait: figures.longest_wait,
            store_bound: figures.store_bound,
            local_bound: figures.local_bound,
        };
        self.0.entry(kind.to_string()).or_default().join(one);
    }

    fn joined(mut self, other: Self) -> Self {
        for (kind, sum) in other.0 {
            self.0.entry(kind).or_default().join(sum);
        }
        self
    }

    fn print(&self) {
        println!(
            "{:<14} {:>7} {:>7} {:>10} {:>10} {:>12} {:>12} {:>12}",
            "kind",
            "worlds",
            "failed",
            "decisions",
            "by nodes",
            "longest, ms",
            "store bound",
            "local bound"
        );
        for (kind, sum) in &self.0 {
            println!(
                "{kind:<14} {:>7} {:>7} {:>10} {:>10} {:>12} {:>11}% {:>11}%",
                sum.worlds,
                sum.failed,
                sum.decisions,
                sum.by_nodes,
                sum.longest_wait,
                sum.store_bound,
                sum.local_bound
            );
        }
    }
}

impl Sum {
    fn join(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.failed += other.failed;
        self.decisions += other.decisions;
        self.by_nodes += other.by_nodes;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.store_bound = self.store_bound.max(other.store_bound);
        self.local_bound = self.local_bound.max(other.local_bound);
    }
}
