//! `tollgate demo`: shows rate limiting on this machine, with a real log and real sockets.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::Method;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::net::TcpListener;
use tollgate::model::policy::{Forwarding, Network};
use tollgate::model::{Policy, Timestamp};
use tollgate::store::Memory;
use tollgate::{Limiter, tower};
use tollgate_proxy::Settings;

use crate::demo::clock::DemoClock;
use crate::demo::replay::{Counts, ReplayedRequest, replay};
use crate::demo::stream::{self, TokenLimitStatus};
use crate::demo::upstream;
use crate::failure::Failure;
use crate::simulate::log::{Entry, Input, Log, Options};

/// Show rate limiting in action: replay a real log through the proxy, with GitHub's limits, to a
/// small service
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The address of the proxy; a free port if this one is in use
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Seconds in which the whole log is replayed; 0 replays it as fast as possible
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Replay this access log instead of the built-in one
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Exit after the replay instead of running until Ctrl-C
    #[arg(long)]
    once: bool,
}

/// Prints a line. If the reader closes the pipe early, the command continues.
macro_rules! say {
    ($($text:tt)*) => {{
        // An error means a closed pipe or a full disk: the replay continues without its output.
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

const POLICY: &str = include_str!("../../assets/github.yaml");
const LOG: &[u8] = include_bytes!("../../assets/access-2015-05.log");

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

/// Returns GitHub's limits with this machine as a trusted proxy, because the replay sends the log's
/// clients in a header.
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
    let replayed = replay(log, address, &clock, duration, |counts, at| board.show(counts, at));
    let counts = tokio::select! {
        counts = replayed => counts,
        // The replay's connections are closed, because the proxy would wait for them otherwise.
        () = interrupted() => {
            board.abandon();
            proxy.await??;
            return Ok(());
        }
    };
    board.finish(&counts);
    print_stream_result(&stream::show().await?);
    if flags.once {
        return Ok(());
    }
    say!("\nThe proxy keeps running with the current time; Ctrl-C stops it.");
    proxy.await??;
    Ok(())
}

fn print_stream_result(shown: &TokenLimitStatus) {
    let TokenLimitStatus { writing, settled } = shown;
    say!("\nA model with policies/llm-tokens.yaml, which limits tokens per minute for each key:");
    say!(
        "  max_tokens is {}: {} reserved, {} remaining",
        stream::MAX_TOKENS,
        writing.held,
        writing.remaining
    );
    say!(
        "  prompt and response had {}: settled at the end of the stream, {} remaining",
        settled.used,
        settled.remaining
    );
}

async fn interrupted() {
    // If there is no signal handler, the process can only be killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the requests of the log that can be sent again.
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
    say!("Tollgate listens on http://{address} with GitHub's limits (policies/github.yaml):");
    say!("60 requests per hour for each address, 5,000 for each token; a 304 is free.\n");
    let tag = upstream::entity_tag("/hello");
    say!("Try it in another terminal:");
    for (command, remark) in [
        (format!("curl -i http://{address}/hello"), "the status of an address"),
        (
            format!("curl -i -H 'authorization: Bearer me' http://{address}/hello"),
            "the status of a token",
        ),
        (format!("curl -i -H 'if-none-match: {tag}' http://{address}/hello"), "a 304, not charged"),
        (
            format!("curl -s http://{address}/rate_limit"),
            "the status of every limit, never charged",
        ),
        (
            format!(
                "for i in $(seq 70); do curl -s -o /dev/null -w '%{{http_code}} ' http://{address}/; done"
            ),
            "exceed the limit",
        ),
    ] {
        say!("  # {remark}\n  {command}");
    }
    say!("");
    say!(
        "{requests} requests of a real log are now replayed in about {seconds} s; the clock runs as fast as the log."
    );
}

/// A printer of the current counts. On a terminal, it updates one line. Elsewhere, it prints one
/// line for each tenth of the log.
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
        // If the template did not parse, a test that runs the demo would fail.
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

    fn abandon(&self) {
        self.bar.abandon();
        say!("The replay was interrupted.");
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

/// Formats the log's time as weekday and hour in UTC. The date of the log does not matter to the
/// demo.
fn day_and_hour(at: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let minutes = at.as_millis() / 60_000;
    let day = DAYS.get((minutes / 1440 % 7) as usize).copied().unwrap_or_default();
    format!("{day} {:02}:{:02}", minutes / 60 % 24, minutes % 60)
}
