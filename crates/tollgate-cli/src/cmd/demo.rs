//! `tollgate demo`: limiting at work on this machine, with a real log and real sockets.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::Method;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::net::TcpListener;
use tollgate::core::policy::{Forwarding, Network};
use tollgate::core::{Policy, Timestamp};
use tollgate::store::Memory;
use tollgate::{Limiter, tower};
use tollgate_proxy::Settings;

use crate::demo::clock::DemoClock;
use crate::demo::replay::{Counts, ReplayedRequest, replay};
use crate::demo::stream::{self, TokenLimitStatus};
use crate::demo::upstream;
use crate::failure::Failure;
use crate::simulate::log::{Entry, Input, Log, Options};

/// See limiting at work: a small service, the proxy in front of it with GitHub's limits, and a real log replayed
/// through both.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Where the proxy listens; a free port if this one is taken
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Seconds in which the whole log is replayed; 0 is as fast as it goes
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Replays this access log instead of the one that comes with the program
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ends when the log was replayed, instead of staying up until Ctrl-C
    #[arg(long)]
    once: bool,
}

/// Prints a line. A reader that closes the pipe early ends nothing.
macro_rules! say {
    ($($text:tt)*) => {{
        // An error is a closed pipe or a full disk: the replay itself still means something.
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

const POLICY: &str = include_str!("../../../../policies/github.yaml");
const LOG: &[u8] = include_bytes!("../../../../examples/access-2015-05.log");

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let input = flags.log.clone().map_or(Input::Embedded(LOG), Input::from);
    let log = requests(&input)?;
    let (Some(first), Some(last)) = (log.first(), log.last()) else {
        return Err(format!("{input} has no request that can be replayed").into());
    };
    let clock = DemoClock::new(first.at, last.at);
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(demonstrate(flags, policy()?, &log, clock))
}

/// GitHub's limits, believing this machine about whom it forwards for: the log's clients are told so.
fn policy() -> Result<Policy, Failure> {
    let trusted = vec![Network::parse("127.0.0.0/8")?];
    let loaded = tollgate_policy::parse("policies/github.yaml", POLICY)?;
    Ok(loaded.policy.with_forwarding(Forwarding { trusted, ..Forwarding::default() }))
}

async fn demonstrate(
    flags: &Flags,
    policy: Policy,
    log: &[ReplayedRequest],
    clock: DemoClock,
) -> Result<(), Failure> {
    let service = TcpListener::bind("127.0.0.1:0").await?;
    let service_address = service.local_addr()?;
    tokio::spawn(upstream::serve(service));

    let listener = match TcpListener::bind(flags.listen).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(SocketAddr::new(flags.listen.ip(), 0)).await?,
    };
    let address = listener.local_addr()?;
    let limiter = Limiter::new(policy, Memory::default()).with_clock(clock.clone());
    let settings = Settings::new(format!("http://{service_address}").parse()?);
    let proxy = tollgate_proxy::run(listener, settings, tower::Layer::new(limiter), interrupted());
    let proxy = tokio::spawn(proxy);

    introduce(address, log.len(), flags.seconds);
    let board = LiveCounts::new(log.len());
    let duration = Duration::from_secs(flags.seconds);
    let counts = replay(log, address, &clock, duration, |counts, at| board.show(counts, at)).await;
    board.finish(&counts);
    print_stream_result(&stream::show().await?);
    if flags.once {
        return Ok(());
    }
    say!("\nThe proxy stays up; Ctrl-C ends it. The clock is today's again.");
    proxy.await??;
    Ok(())
}

fn print_stream_result(shown: &TokenLimitStatus) {
    let TokenLimitStatus { writing, settled } = shown;
    say!("\nA model behind policies/llm-tokens.yaml, its tokens a minute for each key:");
    say!(
        "  it may write {} tokens: {} are held, {} are left",
        stream::MAX_TOKENS,
        writing.held,
        writing.remaining
    );
    say!(
        "  it wrote, with the prompt, {}: settled at the end of its stream, {} are left",
        settled.used,
        settled.remaining
    );
}

async fn interrupted() {
    // Without the signal there is no way to be told to end; the process can still be killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The log's requests, as far as they can be sent again.
fn requests(input: &Input) -> Result<Vec<ReplayedRequest>, Failure> {
    let mut log = Log::open(std::slice::from_ref(input), &Options::default())?;
    let mut requests = Vec::new();
    while let Some(entry) = log.next_entry()? {
        requests.extend(replayed(&entry));
    }
    Ok(requests)
}

fn replayed(entry: &Entry) -> Option<ReplayedRequest> {
    Some(ReplayedRequest {
        at: Timestamp::from_millis(entry.time),
        client: entry.address()?,
        method: Method::from_bytes(entry.method()?).ok()?,
        target: String::from_utf8_lossy(entry.target().filter(|target| target.starts_with(b"/"))?)
            .into_owned(),
        is_conditional: entry.status == 304,
    })
}

fn introduce(address: SocketAddr, requests: usize, seconds: u64) {
    say!("Tollgate stands at http://{address} with GitHub's limits (policies/github.yaml):");
    say!("60 requests an hour for each address, 5,000 for each token, a 304 is free.\n");
    let tag = upstream::entity_tag("/hello");
    say!("Try it in another terminal:");
    for (command, remark) in [
        (format!("curl -i http://{address}/hello"), "how a stranger stands"),
        (
            format!("curl -i -H 'authorization: Bearer me' http://{address}/hello"),
            "how a token stands",
        ),
        (format!("curl -i -H 'if-none-match: {tag}' http://{address}/hello"), "a 304, not charged"),
        (format!("curl -s http://{address}/rate_limit"), "every standing, never charged"),
        (
            format!(
                "for i in $(seq 70); do curl -s -o /dev/null -w '%{{http_code}} ' http://{address}/; done"
            ),
            "into the limit",
        ),
    ] {
        say!("  # {remark}\n  {command}");
    }
    say!("");
    say!(
        "{requests} requests of a real log now pass through it in about {seconds} s; its days pass as fast."
    );
}

/// The live counts: a line that changes on a terminal, a line every tenth elsewhere.
struct LiveCounts {
    bar: ProgressBar,
    requests: u64,
    is_terminal: bool,
}

impl LiveCounts {
    fn new(requests: usize) -> Self {
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        let target =
            if is_terminal { ProgressDrawTarget::stdout() } else { ProgressDrawTarget::hidden() };
        let requests = requests as u64;
        let bar = ProgressBar::with_draw_target(Some(requests), target);
        // A template that does not parse is told by the first test that runs the demonstration.
        if let Ok(style) = ProgressStyle::with_template("{bar:30.green} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        Self { bar, requests, is_terminal }
    }

    fn show(&self, counts: &Counts, at: Timestamp) {
        self.bar.set_message(format!("{}  {}", day_and_hour(at), summary(counts)));
        self.bar.set_position(counts.sent);
        if !self.is_terminal && counts.sent.is_multiple_of(self.requests.div_ceil(10)) {
            say!("{:>6}/{}  {}", counts.sent, self.requests, summary(counts));
        }
    }

    fn finish(&self, counts: &Counts) {
        self.bar.finish_and_clear();
        say!("Replayed {}: {}.", counts.sent, summary(counts));
        for (client, refused) in &counts.refused_by_client {
            say!("  {client} was refused {refused} times");
        }
    }
}

fn summary(counts: &Counts) -> String {
    let Counts { admitted, refused, refunded, failed, .. } = counts;
    let failed = if *failed == 0 { String::new() } else { format!(", {failed} failed") };
    format!("{admitted} admitted, {refused} refused, {refunded} refunded (304){failed}")
}

/// The log's own time, as days since its epoch would tell nobody anything: weekday and hour in UTC.
fn day_and_hour(at: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let minutes = at.as_millis() / 60_000;
    let day = DAYS.get((minutes / 1440 % 7) as usize).copied().unwrap_or_default();
    format!("{day} {:02}:{:02}", minutes / 60 % 24, minutes % 60)
}
