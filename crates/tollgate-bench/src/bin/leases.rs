//! Compares a limit that Redis decides with a leased limit, in one run. Several processes of
//! `tollgate serve` charge one subject as fast as they can.
//!
//! ```sh
//! cargo build --release --bin tollgate
//! cargo run --release -p tollgate-bench --bin leases
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, thread};

use clap::Parser;
use tokio::runtime::Builder;
use tollgate_bench::leases::case::CASES;
use tollgate_bench::leases::nodes::Nodes;
use tollgate_bench::leases::report::table;
use tollgate_bench::leases::round::Round;

/// Compares a leased limit with an exact one.
#[derive(Debug, Parser)]
struct Flags {
    /// The number of nodes.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    nodes: usize,
    /// How often each case is measured.
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    rounds: u32,
    /// The charges of a round.
    #[arg(long, value_name = "COUNT", default_value_t = 200_000)]
    decisions: u64,
    /// The `tollgate` binary; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    tollgate: Option<PathBuf>,
    /// The Redis server to start.
    #[arg(long, value_name = "PATH", default_value = "redis-server")]
    redis_server: OsString,
}

fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    Builder::new_multi_thread().enable_all().build()?.block_on(compare(&flags))
}

async fn compare(flags: &Flags) -> Result<(), Box<dyn Error>> {
    let tollgate = match &flags.tollgate {
        Some(path) => path.clone(),
        None => env::current_exe()?.with_file_name("tollgate"),
    };
    if !tollgate.exists() {
        let build = "cargo build --release --bin tollgate";
        return Err(format!("{} is missing: {build}", tollgate.display()).into());
    }
    let count = flags.nodes.max(1);
    let nodes = Nodes::start(&tollgate, &flags.redis_server, count, flags.decisions).await;
    let mut nodes = nodes.map_err(|error| error.to_string())?;
    let mut measured: [Vec<Round>; CASES.len()] = Default::default();
    // The first round also opens the connections, and so its results are dropped.
    for round in 0..=flags.rounds.max(1) {
        eprintln!("round {round} of {}", flags.rounds);
        for (case, rounds) in CASES.iter().zip(&mut measured) {
            let done = case.round(&mut nodes, round, flags.decisions).await;
            let done = done.map_err(|error| error.to_string())?;
            if round > 0 {
                rounds.push(done);
            }
        }
    }
    let processors = thread::available_parallelism()?;
    println!(
        "{count} nodes, one Redis, {} charges a round; {processors} processors\n",
        flags.decisions
    );
    println!("{}", table(&measured));
    Ok(())
}
