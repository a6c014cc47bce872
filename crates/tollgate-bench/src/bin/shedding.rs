//! Critical requests through `tollgate proxy` at three times the capacity of the service behind it,
//! first with load shedding and then without.
//!
//! ```sh
//! cargo build --release --bin tollgate
//! cargo run --release -p tollgate-bench --bin shedding -- --svg docs/load-shedding.svg
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use clap::Parser;
use tollgate_bench::server::Server;
use tollgate_bench::shedding::figures::Report;
use tollgate_bench::shedding::load::{Phase, Sent, policy, send};
use tollgate_bench::shedding::plot::draw;
use tollgate_bench::shedding::upstream::{CAPACITY, PLACES, SERVICE, Upstream};

/// Shows the effect of load shedding on critical requests.
#[derive(Debug, Parser)]
struct Flags {
    /// The file to draw the results to.
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// The `tollgate` binary to measure; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    tollgate: Option<PathBuf>,
}

const CALM: Phase = Phase { seconds: 5, halves: 1 };
const OVERLOAD: Phase = Phase { seconds: 20, halves: 6 };
const AFTERWARDS: Phase = Phase { seconds: 15, halves: 1 };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let sibling = env::current_exe()?.with_file_name("tollgate");
    let tollgate = flags.tollgate.unwrap_or(sibling);
    if !tollgate.exists() {
        let build = "cargo build --release --bin tollgate";
        return Err(format!("{} is missing: {build}", tollgate.display()).into());
    }
    let runs = [
        ("with shedding", run(&tollgate, "enforce").await?),
        ("without", run(&tollgate, "off").await?),
    ];
    let overload = CALM.seconds..CALM.seconds + OVERLOAD.seconds;
    let service = SERVICE.as_millis();
    println!(
        "A service with {PLACES} workers and {service} ms per request serves {CAPACITY} requests a \
         second. The load is three times as much, for {} s.\n",
        OVERLOAD.seconds
    );
    println!("{}", Report { runs: &runs, seconds: overload.clone() });
    if let Some(path) = flags.svg {
        let seconds = CALM.seconds + OVERLOAD.seconds + AFTERWARDS.seconds;
        fs::write(path, draw(&runs, seconds, &overload))?;
    }
    Ok(())
}

async fn run(tollgate: &Path, mode: &str) -> Result<Vec<Sent>, Box<dyn Error>> {
    eprintln!("shedding: {mode}");
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("policy.yaml");
    fs::write(&file, policy(mode))?;
    let upstream = Upstream::start().await?;
    let proxy = Server::start(|port| {
        let mut command = Command::new(tollgate);
        command.args(["proxy", "--listen", &format!("127.0.0.1:{port}")]);
        // All clients of this measurement have the same address, so the bound for one address is
        // switched off.
        command.args(["--max-connections-per-address", "0"]);
        command.args(["--upstream", &format!("http://{}", upstream.address())]);
        command.arg("--policy").arg(&file);
        command
    })?;
    Ok(send(proxy.address(), &[CALM, OVERLOAD, AFTERWARDS]).await)
}
