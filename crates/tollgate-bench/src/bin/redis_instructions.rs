//! Counts the instructions of a Redis or Valkey server for a decision with callgrind. The decision
//! is made by each form of the step (function, module, tables), by the two-key script, and by
//! redis-cell. Other programs on the machine do not affect the numbers. Kernel instructions are not
//! included.
//!
//! ```sh
//! cargo build --release -p tollgate-module
//! cargo run --release -p tollgate-bench --bin redis_instructions -- --module target/release/libtollgate_module.so
//! ```

use std::error::Error;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, Pipeline, Script, Value as Reply};
use tollgate::model::algo::{Anchor, FixedWindow, SlidingWindow, TokenBucket};
use tollgate::model::{
    Algorithm, Charge, ChargeId, Cost, KeyedHash, Limit, Millis, Operation, Subject, Timestamp,
    Value,
};
use tollgate_bench::redis_store::cell::throttle;
use tollgate_bench::redis_store::two_keys::SCRIPT;
use tollgate_redis::{Keys, Redis, RuntimeChoice};

/// The number of subjects. The windows of all subjects are open before the count begins.
const SUBJECTS: u64 = 500;
/// The quota of each limit. It is larger than the number of charged units.
const QUOTA: u64 = 1_000_000;
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The largest number of attempts to connect to a server that is starting. [`PAUSE`] is the pause
/// between two attempts.
const ATTEMPTS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Parser)]
struct Arguments {
    /// The server to start under valgrind.
    #[arg(long, default_value = "redis-server")]
    redis_server: PathBuf,
    /// The module, as `cargo build --release -p tollgate-module` builds it.
    #[arg(long)]
    module: PathBuf,
    /// redis-cell, as its repository builds it. Without it, its column is empty.
    #[arg(long)]
    redis_cell: Option<PathBuf>,
    /// The counted decisions of a case.
    #[arg(long, default_value_t = 2_560)]
    decisions: usize,
    /// The numbers of decisions in a call, with one limit.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128])]
    calls: Vec<usize>,
    /// Run only the cases with this text in their names.
    #[arg(long, default_value = "")]
    only: String,
    /// Count only this contender.
    #[arg(long)]
    who: Option<Contender>,
    /// Write the profile of the last run to this file, for `callgrind_annotate`.
    #[arg(long)]
    profile: Option<PathBuf>,
}

/// A case: the limits of a decision, and the numbers of decisions in one call that are measured.
struct Case {
    name: &'static str,
    limits: Vec<Limit>,
    calls: Vec<usize>,
}

/// A program in the server that decides.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contender {
    /// The script with a count and an expiry, one call for each decision
    TwoKeys,
    /// redis-cell, one command for each decision
    RedisCell,
    /// The step as a function
    Function,
    /// The step in the module, with a key for each subject
    Module,
    /// The step in the module, with tables
    Tables,
}

impl Contender {
    /// Returns whether the contender can be measured in `case`: it supports the limits of the case,
    /// and its module is available.
    fn has(self, case: &Case, arguments: &Arguments) -> bool {
        match self {
            Self::TwoKeys => {
                case.limits.iter().all(|it| matches!(it.algorithm(), Algorithm::FixedWindow(_)))
            }
            Self::RedisCell => {
                let is_bucket = |it: &Limit| matches!(it.algorithm(), Algorithm::TokenBucket(_));
                arguments.redis_cell.is_some() && case.limits.iter().all(is_bucket)
            }
            Self::Function | Self::Module | Self::Tables => true,
        }
    }

    /// Returns the form of the step that the contender uses. Returns `None` for a contender that is
    /// not Tollgate.
    fn form(self) -> Option<RuntimeChoice> {
        match self {
            Self::TwoKeys | Self::RedisCell => None,
            Self::Function => Some(RuntimeChoice::Function),
            Self::Module => Some(RuntimeChoice::Best),
            Self::Tables => Some(RuntimeChoice::Tables),
        }
    }
}

/// A hash for the names of subjects. It needs no secret key, because the names do not leave this
/// machine.
struct Plain;

impl KeyedHash for Plain {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let mut hash = [0_u8; 16];
        for (index, byte) in bytes.iter().enumerate() {
            hash[index % 16] = hash[index % 16].wrapping_mul(31) ^ byte;
        }
        hash
    }
}

fn cases(calls: &[usize]) -> Result<Vec<Case>, Box<dyn Error>> {
    let minutes = |count: u64| Millis::from_secs(60 * count);
    let precision = minutes(1);
    let window = |length| FixedWindow::new(QUOTA, minutes(length), Anchor::FirstRequest);
    let of = |name: &str, algorithm| Limit::new(name, algorithm);
    let four: Vec<_> = [60, 61, 62, 63]
        .into_iter()
        .map(|length| Ok(of(&format!("limit{length}"), Algorithm::FixedWindow(window(length)?))?))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let bucket = Algorithm::TokenBucket(TokenBucket::new(QUOTA, minutes(60), QUOTA)?);
    let sliding = Algorithm::SlidingWindow(SlidingWindow::new(QUOTA, minutes(60), precision)?);
    let shared = vec![32];
    Ok(vec![
        Case { name: "one fixed window", limits: vec![four[0].clone()], calls: calls.to_vec() },
        Case { name: "four fixed windows", limits: four, calls: shared.clone() },
        Case { name: "token bucket", limits: vec![of("bucket", bucket)?], calls: vec![1, 32] },
        Case {
            name: "sliding window, 60 blocks",
            limits: vec![of("sliding", sliding)?],
            calls: shared,
        },
    ])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    println!("| | a call | two keys | redis-cell | function | module | module with tables |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let cases = cases(&arguments.calls)?;
    for case in cases.into_iter().filter(|case| case.name.contains(&arguments.only)) {
        for call in &case.calls {
            let mut row = vec![case.name.to_owned(), call.to_string()];
            for contender in Contender::value_variants() {
                let is_counted = arguments.who.is_none_or(|only| only == *contender);
                row.push(if is_counted && contender.has(&case, &arguments) {
                    let none = run(&arguments, &case, *call, *contender, 0).await?;
                    let all =
                        run(&arguments, &case, *call, *contender, arguments.decisions).await?;
                    let counted = (arguments.decisions / call * call) as u64;
                    (all.saturating_sub(none) / counted).to_string()
                } else {
                    String::new()
                });
            }
            println!("| {} |", row.join(" | "));
        }
    }
    Ok(())
}

/// Returns the number of instructions that a server needs for `decisions` decisions and for its
/// shutdown.
async fn run(
    arguments: &Arguments,
    case: &Case,
    call: usize,
    contender: Contender,
    decisions: usize,
) -> Result<u64, Box<dyn Error>> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let module = match (contender, &arguments.redis_cell) {
        (Contender::RedisCell, Some(module)) => module,
        _ => &arguments.module,
    };
    let mut server = start(arguments, module, port)?;
    let mut connection = connect(port).await?;
    match contender.form() {
        Some(choice) => {
            let store = Redis::new(connection.clone(), Keys::new(Plain), choice).await?;
            // Charges in each of sixty blocks. After that, all blocks of a sliding window are in
            // use, and every window is open.
            for block in 0..60 {
                let now = Timestamp::from_millis(NOW.as_millis() + block * 60_000);
                decide(&store, case, now, 100, SUBJECTS as usize).await?;
            }
            let now = Timestamp::from_millis(NOW.as_millis() + 59 * 60_000 + 1);
            decide(&store, case, now, call, SUBJECTS as usize).await?;
            forget_the_start(server.id())?;
            decide(&store, case, now, call, decisions).await?;
        }
        None => {
            let script = Script::new(SCRIPT);
            script.prepare_invoke().load_async(&mut connection).await?;
            let command = |subject: usize| match contender {
                Contender::TwoKeys => two_keys(&script, case, subject),
                _ => throttle(&format!("bucket:{subject:020}"), QUOTA, 3_600),
            };
            send(&mut connection, command, call, SUBJECTS as usize).await?;
            forget_the_start(server.id())?;
            send(&mut connection, command, call, decisions).await?;
        }
    }
    let _ = redis::cmd("SHUTDOWN").arg("NOSAVE").exec_async(&mut connection).await;
    let mut output = String::new();
    server.stderr.take().ok_or("no output")?.read_to_string(&mut output)?;
    server.wait()?;
    let collected = output
        .rsplit_once("Collected :")
        .and_then(|(_, rest)| rest.split_ascii_whitespace().next()?.parse().ok());
    collected.ok_or_else(|| format!("valgrind printed no number: {output}").into())
}

/// Returns the command that calls the two-key script for one subject, with the two keys of each
/// limit.
fn two_keys(script: &Script, case: &Case, subject: usize) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.get_hash()).arg(2 * case.limits.len());
    for limit in &case.limits {
        for part in ["count", "expiry"] {
            command.arg(format!("rl:{}:{subject:020}:{part}", limit.name()));
        }
    }
    // The windows end in the year 2100.
    command.arg(1).arg(NOW.as_millis() / 1_000);
    for _ in &case.limits {
        command.arg(4_102_444_800_u64);
    }
    command
}

/// Sends `decisions` commands in groups of `call` commands. Each group is one write, as by a client
/// with `call` concurrent callers.
async fn send(
    connection: &mut MultiplexedConnection,
    command: impl Fn(usize) -> Cmd,
    call: usize,
    decisions: usize,
) -> Result<(), Box<dyn Error>> {
    for first in (0..decisions / call).map(|number| number * call) {
        let mut commands = Pipeline::new();
        for number in first..first + call {
            commands.add_command(command(number % SUBJECTS as usize));
        }
        let _: Vec<Reply> = commands.query_async(connection).await?;
    }
    Ok(())
}

/// Resets the count of instructions, to exclude the start of the server.
fn forget_the_start(process: u32) -> Result<(), Box<dyn Error>> {
    let output =
        Command::new("callgrind_control").args(["--zero", &process.to_string()]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err("callgrind_control, which comes with valgrind, cannot reset the count".into())
}

async fn decide(
    store: &Redis,
    case: &Case,
    now: Timestamp,
    call: usize,
    decisions: usize,
) -> Result<(), Box<dyn Error>> {
    let named: Vec<_> = (0..SUBJECTS)
        .map(|number| Subject::new([("user", Value::Clear(&number.to_be_bytes()))], &Plain))
        .collect();
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charges: Vec<Vec<Charge<'_>>> = named
        .iter()
        .map(|subject| {
            case.limits.iter().map(|limit| Charge { limit, subject, operation }).collect()
        })
        .collect();
    let mut place = 0;
    for _ in 0..decisions / call {
        let calls: Vec<_> =
            (place..place + call).map(|at| (now, &charges[at % charges.len()][..])).collect();
        place += call;
        for answer in store.apply_all(&calls).await {
            if !answer?.all_admitted() {
                return Err("a decision was refused".into());
            }
        }
    }
    Ok(())
}

fn start(arguments: &Arguments, module: &Path, port: u16) -> Result<Child, Box<dyn Error>> {
    let mut valgrind = Command::new("valgrind");
    let profile = arguments.profile.as_deref().unwrap_or_else(|| Path::new("/dev/null"));
    valgrind.args(["--tool=callgrind", "--num-callers=1"]);
    valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
    valgrind.arg(&arguments.redis_server).args(["--port", &port.to_string(), "--save", ""]);
    valgrind.args(["--bind", "127.0.0.1", "--hz", "1", "--loadmodule"]);
    valgrind.arg(module.canonicalize()?);
    Ok(valgrind.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

async fn connect(port: u16) -> Result<MultiplexedConnection, Box<dyn Error>> {
    let client = Client::open(format!("redis://127.0.0.1:{port}"))?;
    for _ in 0..ATTEMPTS {
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(60)))
            .set_response_timeout(Some(Duration::from_secs(60)));
        if let Ok(connection) = client.get_multiplexed_async_connection_with_config(&config).await {
            return Ok(connection);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err("the server did not start under valgrind".into())
}
