//! Measures the processor time of a decision through each listener, in one run: `tollgate serve` is
//! compared with throttlecrab-server, and `tollgate proxy` with a bare proxy.
//!
//! ```sh
//! cargo install throttlecrab-server --version 0.4.40 --locked --root target/peers
//! cargo build --release --workspace --bin tollgate --bin bare_answer --bin bare_proxy
//! cargo run --release -p tollgate-bench --bin listeners -- --instructions
//! ```

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, thread};

use clap::Parser;
use tokio::runtime::Builder;
use tollgate_bench::listeners::case::{CASES, Case, Scale};
use tollgate_bench::listeners::contender::{Programs, policy};
use tollgate_bench::listeners::instructions::per_decision;
use tollgate_bench::listeners::report::Report;
use tollgate_bench::listeners::upstream::Upstream;

/// Compares the server's cost of a decision for each listener.
#[derive(Debug, Parser)]
struct Flags {
    /// Run a few decisions of every case, to check that it works.
    #[arg(long)]
    quick: bool,
    /// Also count instructions, in separate runs under valgrind.
    #[arg(long)]
    instructions: bool,
    /// How often each contender is measured.
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,
    /// Only the cases whose name starts with this: HTTP, gRPC, RESP, proxy.
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// The `tollgate` binary to measure; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    tollgate: Option<PathBuf>,
    /// The throttlecrab-server binary to compare with.
    #[arg(long, value_name = "PATH", default_value = "target/peers/bin/throttlecrab-server")]
    throttlecrab: PathBuf,
    /// The folder for callgrind's profiles.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/tmp")]
    profiles: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    Builder::new_multi_thread().enable_all().build()?.block_on(compare(&flags))
}

async fn compare(flags: &Flags) -> Result<(), Box<dyn Error>> {
    let scale = if flags.quick { Scale::QUICK } else { Scale::FULL };
    let scale = Scale { rounds: flags.rounds.unwrap_or(scale.rounds).max(1), ..scale };
    let directory = tempfile::tempdir()?;
    if flags.instructions {
        let profiles = &flags.profiles;
        fs::create_dir_all(profiles).map_err(|error| {
            format!("cannot create the folder {} for profiles: {error}", profiles.display())
        })?;
    }
    let upstream = Upstream::start().await?;
    let programs = programs(flags, directory.path(), &upstream)?;
    let mut report = Report::new();
    for case in CASES.iter().filter(|case| case.name.starts_with(&flags.only)) {
        eprintln!("{}", case.name);
        let measured = case.measure(&programs, scale).await.map_err(|error| error.to_string())?;
        let counted = match flags.instructions {
            true => Some(instructions(case, &programs, &flags.profiles).await?),
            false => None,
        };
        report.add(case, &measured, counted);
    }
    println!("{}\n\n{report}", setting(&programs)?);
    Ok(())
}

fn programs(
    flags: &Flags,
    directory: &Path,
    upstream: &Upstream,
) -> Result<Programs, Box<dyn Error>> {
    let here = env::current_exe()?;
    let sibling = |name: &str| here.with_file_name(name);
    let policy_file = directory.join("listeners.yaml");
    fs::write(&policy_file, policy())?;
    let programs = Programs {
        tollgate: flags.tollgate.clone().unwrap_or_else(|| sibling("tollgate")),
        throttlecrab: flags.throttlecrab.clone(),
        bare_answer: sibling("bare_answer"),
        bare_proxy: sibling("bare_proxy"),
        policy: policy_file,
        upstream: upstream.address(),
        directory: directory.to_owned(),
    };
    let install = "cargo install throttlecrab-server --version 0.4.40 --locked --root target/peers";
    let build =
        "cargo build --release --workspace --bin tollgate --bin bare_answer --bin bare_proxy";
    for (program, by) in [
        (&programs.tollgate, build),
        (&programs.bare_answer, build),
        (&programs.bare_proxy, build),
        (&programs.throttlecrab, install),
    ] {
        if !program.exists() {
            return Err(format!("{} is missing: {by}", program.display()).into());
        }
    }
    Ok(programs)
}

async fn instructions(
    case: &Case,
    programs: &Programs,
    profiles: &Path,
) -> Result<[u64; 2], Box<dyn Error>> {
    let mut counted = [0; 2];
    for (who, count) in [case.ours, case.peer].into_iter().zip(&mut counted) {
        let name = format!("callgrind.{who}.{}", case.name).replace([' ', ',', '/'], "-");
        let profile = profiles.join(name).into_os_string();
        *count =
            per_decision(case, who, programs, &profile).await.map_err(|error| error.to_string())?;
    }
    Ok(counted)
}

/// Returns the versions of the programs and the machine with which the numbers were measured.
fn setting(programs: &Programs) -> Result<String, Box<dyn Error>> {
    let version = |program: &Path| -> Result<String, Box<dyn Error>> {
        let output = Command::new(program).arg("--version").output()?.stdout;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    };
    let processors = thread::available_parallelism()?;
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let model = model.unwrap_or("unknown processor");
    let (ours, peer) = (version(&programs.tollgate)?, version(&programs.throttlecrab)?);
    Ok(format!("{ours}, {peer}; {processors} processors, {model}"))
}
