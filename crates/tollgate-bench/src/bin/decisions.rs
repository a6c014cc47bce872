//! Counts the instructions of a decision in the library, from the policy to the header fields, and
//! of a check of one key, with callgrind. Other programs on the machine do not affect the numbers.
//!
//! ```sh
//! cargo run --release -p tollgate-bench --bin decisions
//! cargo run --release -p tollgate-bench --bin decisions -- --profile read  # and the functions
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};

use clap::{Parser, ValueEnum};
use tollgate::headers::{self, HeaderLines};
use tollgate::limiter::Answer;
use tollgate::model::attributes::Field;
use tollgate::model::policy::PlainPlan;
use tollgate::model::{Headers, RequestAttributes};
use tollgate::store::Memory;
use tollgate::{CounterClock, Limiter, StoreError};
use tollgate_bench::contender::{Allowance, Contender, Governor, Keys, Requests, Tollgate};

const POLICY: &str = include_str!("../../../../policies/github.yaml");
/// The number of decisions before the count begins. [`COUNTED`] is the number of decisions after
/// that, which are counted.
const WARM: usize = 1_000;
const COUNTED: usize = 10_000;
/// The function whose instructions are counted, including the instructions of the functions that it
/// calls.
const FUNCTION: &str = "*counted_decision*";

#[derive(Parser)]
struct Arguments {
    /// Print the functions of this case with the most instructions.
    #[arg(long)]
    profile: Option<Case>,
    /// Only make the decisions of this case: the program that callgrind runs.
    #[arg(long, hide = true)]
    run: Option<Case>,
}

/// Header fields: pairs of a name and a value.
struct Fields(&'static [(&'static str, &'static [u8])]);

static USER: Fields = Fields(&[
    ("host", b"api.example.com"),
    ("user-agent", b"octokit-rest.js/22.0.0"),
    ("accept", b"application/vnd.github+json"),
    ("authorization", b"Bearer ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
]);
static STRANGER: Fields = Fields(&[
    ("host", b"api.example.com"),
    ("user-agent", b"octokit-rest.js/22.0.0"),
    ("accept", b"application/vnd.github+json"),
]);

impl Headers for Fields {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.value(name, index)
    }

    fn field(&self, name: &str) -> Field<'_> {
        self.0.field(name)
    }
}

/// The kind of request that is decided, and the number of limits on which it is charged; or the
/// check of one key. The checks by governor are for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Case {
    Stranger,
    Read,
    Search,
    Create,
    Key,
    KeyRefused,
    Window,
    Bucket,
    Governor,
    GovernorRefused,
}

impl Case {
    const fn text(self) -> &'static str {
        match self {
            Self::Stranger => "`GET` without a token: one limit",
            Self::Read => "`GET` with a token: four limits",
            Self::Search => "`GET /search` with a token: four limits",
            Self::Create => "`POST` with a token: six limits",
            Self::Key => "a key by `RateLimiter`",
            Self::KeyRefused => "a key by `RateLimiter`, refused",
            Self::Window => "a key by the store, fixed window",
            Self::Bucket => "a key by the store, token bucket",
            Self::Governor => "a key by governor",
            Self::GovernorRefused => "a key by governor, refused",
        }
    }

    /// Returns the limiter of a key, without any charges; `None` for a request.
    fn contender(self) -> Result<Option<Box<dyn Contender>>, Box<dyn Error>> {
        let (unlimited, exhausted) = (Allowance::Unlimited, Allowance::Exhausted);
        let clock = CounterClock::new;
        Ok(match self {
            Self::Stranger | Self::Read | Self::Search | Self::Create => None,
            Self::Key => Some(Box::new(Keys::new("", unlimited)?)),
            Self::KeyRefused => Some(Box::new(Keys::new("", exhausted)?)),
            Self::Window => Some(Box::new(Tollgate::fixed_window("", clock(), unlimited)?)),
            Self::Bucket => Some(Box::new(Tollgate::token_bucket("", clock(), unlimited)?)),
            Self::Governor => Some(Box::new(Governor::new(unlimited))),
            Self::GovernorRefused => Some(Box::new(Governor::new(exhausted))),
        })
    }

    fn attributes(self) -> RequestAttributes<'static> {
        let (method, path) = match self {
            Self::Search => ("GET", "/search/code"),
            Self::Create => ("POST", "/repos/octocat/hello/issues"),
            _ => ("GET", "/repos/octocat/hello/issues"),
        };
        let headers = if self == Self::Stranger { &STRANGER } else { &USER };
        let peer = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
        let host = Some("api.example.com");
        RequestAttributes { method, path, query: Some("page=2"), host, peer, headers }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if let Some(case) = arguments.run {
        return run(case);
    }
    let directory = tempfile::tempdir()?;
    let profile = directory.path().join("callgrind.out");
    if let Some(case) = arguments.profile {
        instructions(case, &profile)?;
        let status = Command::new("callgrind_annotate").arg(&profile).status()?;
        return status.success().then_some(()).ok_or_else(|| "callgrind_annotate failed".into());
    }
    println!("| request | instructions |");
    println!("| --- | ---: |");
    for case in Case::value_variants() {
        println!("| {} | {} |", case.text(), instructions(*case, &profile)? / COUNTED as u64);
    }
    Ok(())
}

/// Returns the number of instructions of all counted decisions together.
fn instructions(case: Case, profile: &Path) -> Result<u64, Box<dyn Error>> {
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(profile);
    let toggle = format!("--toggle-collect={FUNCTION}");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--num-callers=1", &toggle])
        .arg(out)
        .arg(std::env::current_exe()?)
        .args(["--run", case.to_possible_value().ok_or("a named case")?.get_name()])
        .output()?;
    let output = String::from_utf8_lossy(&output.stderr);
    let collected = output.rsplit_once("Collected :").and_then(|(_, rest)| {
        let number = rest.split_ascii_whitespace().next()?;
        number.parse().ok()
    });
    collected.ok_or_else(|| format!("valgrind printed no number: {output}").into())
}

fn run(case: Case) -> Result<(), Box<dyn Error>> {
    if let Some(contender) = case.contender()? {
        let requests = contender.requests(&[0]);
        black_box(requests.decide(WARM));
        counted_decisions_of_key(&*requests);
        return Ok(());
    }
    let policy = tollgate_policy::parse("github.yaml", &generous())?.policy;
    let limiter = Limiter::new(policy, Memory::default());
    let (attributes, mut room) = (case.attributes(), Room::default());
    for _ in 0..WARM {
        decide(&limiter, &attributes, &mut room);
        end(&limiter, &room)?;
    }
    for _ in 0..COUNTED {
        counted_decision(&limiter, &attributes, &mut room);
        end(&limiter, &room)?;
    }
    Ok(())
}

/// The buffers that all decisions of a case reuse, which saves the allocation of memory for each
/// decision.
#[derive(Default)]
struct Room {
    plan: PlainPlan,
    answer: Answer,
    lines: HeaderLines,
}

/// Returns GitHub's policy with larger quotas, which no case uses up.
fn generous() -> String {
    POLICY
        .replace("quota: 60,", "quota: 60_000,")
        .replace("quota: 30,", "quota: 30_000,")
        .replace("quota: 80,", "quota: 80_000,")
        .replace("quota: 500,", "quota: 500_000,")
        .replace("quota: 900,", "quota: 900_000,")
        .replace("quota: 5_000,", "quota: 5_000_000,")
}

/// Makes one decision: plans the request, charges its limits, and writes the header fields of its
/// response. Only the instructions of this function are counted.
#[inline(never)]
fn counted_decision(
    limiter: &Limiter<Memory>,
    attributes: &RequestAttributes<'_>,
    room: &mut Room,
) {
    decide(limiter, attributes, room);
}

/// Makes all counted decisions about one key.
#[inline(never)]
fn counted_decisions_of_key(requests: &dyn Requests) {
    black_box(requests.decide(COUNTED));
}

#[inline(always)]
fn decide(limiter: &Limiter<Memory>, attributes: &RequestAttributes<'_>, room: &mut Room) {
    let Room { plan, answer, lines } = room;
    let policy = limiter.policy();
    assert!(policy.plan_plain(attributes, limiter.key(), plan), "the rules only enforce limits");
    let charged = limiter.charge_now(limiter.now(), plan.charges(), answer);
    assert!(charged.is_some_and(|charged| charged.is_ok()), "nothing overrides the policy");
    lines.clear();
    headers::write(&policy.answers().headers, answer.evaluation(), lines);
    black_box(lines.as_str());
}

/// Releases the permit of a request, and checks that the request was admitted. The instructions of
/// this function are not counted.
fn end(limiter: &Limiter<Memory>, room: &Room) -> Result<(), StoreError> {
    assert!(room.answer.evaluation().is_admitted(), "no quota is used up");
    let Some(receipt) = room.answer.receipt(room.plan.charges()) else { return Ok(()) };
    let (_, permits) = receipt.split_permits();
    at_once(limiter.refund(permits))
}

/// Returns the output of a future that is ready at its first poll.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the store in memory answers at once"),
    }
}
