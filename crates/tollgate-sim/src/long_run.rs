//! Runs of many worlds, which can be interrupted and continued later.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use tollgate_sim::{Kind, Outcome, Plan, replay_command, run};

use crate::sums::Sums;

/// The number of seeds after which progress is logged.
const SEEDS_PER_LINE: u64 = 1_000;

/// A run of the worlds of a range of seeds.
pub(crate) struct LongRun {
    seeds: Range<u64>,
    log: Option<File>,
}

impl LongRun {
    /// Creates a run of `seeds`. If the file `log` exists, the run begins after the last seeds of
    /// the file.
    pub(crate) fn open(mut seeds: Range<u64>, log: Option<&Path>) -> Result<Self, String> {
        let Some(path) = log else { return Ok(Self { seeds, log: None }) };
        let failed = |error| format!("{}: {error}", path.display());
        match fs::read_to_string(path) {
            Ok(text) => {
                seeds.start =
                    seeds.start.max(text.lines().filter_map(last_seed).max().unwrap_or(0));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let log = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        Ok(Self { seeds, log: Some(log) })
    }

    /// Runs the worlds with `threads` threads. If `kind` is set, runs only the worlds of this kind.
    /// Prints and logs the worlds that fail. Returns the total results.
    ///
    /// # Errors
    /// The log cannot be written, or none of the seeds has a world of `kind`.
    pub(crate) fn run(&mut self, threads: usize, kind: Option<Kind>) -> Result<Sums, String> {
        let (mut all, seeds) = (Sums::default(), self.seeds.clone());
        while !self.seeds.is_empty() {
            let begun = Instant::now();
            let end = self.seeds.end.min(self.seeds.start.saturating_add(SEEDS_PER_LINE));
            let (sums, failures) = run_range(self.seeds.start..end, threads, kind);
            let mut lines = failures.concat();
            print!("{lines}");
            let (worlds, failed) = sums.worlds();
            let (start, seconds) = (self.seeds.start, begun.elapsed().as_secs_f64());
            lines += &format!(
                "seeds {start}..{end}: {worlds} worlds in {seconds:.1} s, {failed} failed\n"
            );
            if let Some(log) = &mut self.log {
                log.write_all(lines.as_bytes()).map_err(|error| format!("log: {error}"))?;
            }
            all.join(sums);
            self.seeds.start = end;
        }
        if let (Some(kind), (0, _), false) = (kind, all.worlds(), seeds.is_empty()) {
            let Range { start, end } = seeds;
            return Err(format!("none of the seeds {start}..{end} has a world of the kind {kind}"));
        }
        Ok(all)
    }
}

/// Returns the seed after the last one of a line such as `seeds 0..1000: 1000 worlds`.
fn last_seed(line: &str) -> Option<u64> {
    line.strip_prefix("seeds ")?.split_once("..")?.1.split_once(':')?.0.parse().ok()
}

/// Runs the worlds of `seeds`. Returns their sums, and the descriptions of those that failed.
fn run_range(seeds: Range<u64>, threads: usize, kind: Option<Kind>) -> (Sums, Vec<String>) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let (mut sums, mut failures) = (Sums::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return (sums, failures);
            }
            let plan = Plan::of(seed);
            if kind.is_some_and(|kind| kind != plan.kind) {
                continue;
            }
            let outcome = run(&plan, false);
            if !outcome.violations.is_empty() {
                failures.push(description(&plan, &outcome));
            }
            sums.add(plan.kind, &outcome);
        }
    };
    let (mut sums, mut failures) = (Sums::default(), Vec::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (of_worker, failed) = worker.join().expect("a world ends");
            sums.join(of_worker);
            failures.extend(failed);
        }
    });
    (sums, failures)
}

/// Returns the description of a world that failed, with the command that replays it.
fn description(plan: &Plan, outcome: &Outcome) -> String {
    let seed = plan.seed;
    let violations = outcome.violations.iter().map(|it| format!("  violation: {it}\n"));
    let violations: String = violations.collect();
    format!("seed {seed}: {plan}\n{violations}  replay: {}\n", replay_command(seed))
}
