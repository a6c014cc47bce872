//! Compares the Redis store with the two-key script, which is called once per request: decisions
//! per second, processor time of the server and of the client, and latencies.
//!
//! `cargo run --release -p tollgate-bench --bin redis_vs_two_keys [-- --markdown]`

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::thread;

use clap::Parser;
use tokio::runtime::Builder;
use tollgate_bench::redis_store::cases::{Case, ComparedContenders, Scale};
use tollgate_bench::redis_store::report::{Report, Style};
use tollgate_bench::redis_store::server::Server;

/// Compares Tollgate's Redis store with a script that uses two keys for each limit, in one run.
#[derive(Debug, Parser)]
struct Flags {
    /// Run a few decisions of every case, to check that it works.
    #[arg(long)]
    quick: bool,
    /// Print the table in the form of the documentation.
    #[arg(long)]
    markdown: bool,
    /// How often each case is measured.
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,
    /// Only the cases with this number of callers.
    #[arg(long, value_name = "COUNT")]
    callers: Option<usize>,
    /// The Redis server to start.
    #[arg(long, value_name = "PATH", default_value = "redis-server")]
    redis_server: OsString,
    /// Also measure the server module at this path, in both of its forms.
    #[arg(long, value_name = "PATH")]
    module: Option<PathBuf>,
    /// Also measure redis-cell, from its module at this path, in a server of its own.
    #[arg(long, value_name = "PATH")]
    redis_cell: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let scale = if flags.quick { Scale::QUICK } else { Scale::FULL };
    let scale = Scale { rounds: flags.rounds.unwrap_or(scale.rounds).max(1), ..scale };
    let cases = Case::all().filter(|case| flags.callers.is_none_or(|only| case.callers == only));
    let cases: Vec<_> = cases.collect();
    let style = if flags.markdown { Style::Markdown } else { Style::Terminal };
    let server = Server::start_with(&flags.redis_server, flags.module.as_deref())?;
    let start = |module: PathBuf| Server::start_with(&flags.redis_server, Some(&module));
    let cell = flags.redis_cell.map(start).transpose()?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let contenders =
            ComparedContenders::new(server, cell, &scale, flags.module.is_some()).await?;
        compare(&contenders, &scale, &cases, style).await
    })
}

async fn compare(
    contenders: &ComparedContenders,
    scale: &Scale,
    cases: &[Case],
    style: Style,
) -> Result<(), Box<dyn Error>> {
    contenders.open_windows(scale).await?;
    let mut report = Report::new(style);
    for (number, case) in cases.iter().enumerate() {
        eprintln!("{case:?}");
        report.add(&contenders.names(), &contenders.measure(number, *case, scale).await?);
    }
    println!("{}\n", setting(contenders).await?);
    println!("{report}");
    Ok(())
}

/// Returns the versions of the programs and the machine with which the numbers were measured.
async fn setting(contenders: &ComparedContenders) -> Result<String, Box<dyn Error>> {
    let version = contenders.two_keys.server_version().await?;
    let processors = thread::available_parallelism()?;
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let model = model.unwrap_or("unknown processor");
    let runs = contenders.tollgate.iter().map(|form| form.runtime().to_string());
    let runs: Vec<_> = runs.collect();
    let runs = runs.join(" and as a ");
    Ok(format!("Redis {version}, the step as a {runs}; {processors} processors, {model}"))
}
