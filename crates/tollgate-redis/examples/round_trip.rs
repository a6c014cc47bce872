//! Measures decisions over a network with a round trip and delayed packets. The example runs two
//! nodes and two shards, with a proxy between each node and each shard.
//!
//! Run the example with `cargo run --release -p tollgate-redis --example round_trip`. The example
//! needs `redis-server`.

#[path = "../tests/kit/mod.rs"]
mod kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kit::{Latency, LatencyProxy, Server};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{FixedWindow, fixed_window::Anchor};
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Subject, Timestamp, Value,
};
use tollgate_redis::{DEFAULT_DEADLINE, Keys, RedisShard, RuntimeChoice, ShardSettings};

const NODES: usize = 2;
const SHARDS: usize = 2;
const RUN: Duration = Duration::from_secs(8);

#[tokio::main]
async fn main() {
    println!(
        "| round trip | delayed replies | decisions/s | decided by nodes alone | p50 | p99 \
         | the machine's delay: p99 | max |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let far = Latency { one_way: Duration::from_micros(3_650), ..near() };
    for rate in [100, 400, 800, 1_500] {
        row(far, rate).await;
    }
    row(near(), 1_500).await;
    let stalls = Latency { stall_every: 100, stall: Duration::from_millis(500), ..near() };
    row(stalls, 1_500).await;
}

const fn near() -> Latency {
    Latency { one_way: Duration::from_micros(100), stall_every: 0, stall: Duration::ZERO }
}

/// Makes decisions at `rate` for [`RUN`], and prints a row of the table.
async fn row(latency: Latency, rate: u32) {
    let servers = [Server::start().await, Server::start().await];
    let mut stores = Vec::new();
    let mut networks = Vec::new();
    for _ in 0..NODES {
        for server in &servers {
            let network = LatencyProxy::start(server.port(), latency);
            let settings = ShardSettings::new(network.url().parse().expect("an address"));
            let store = RedisShard::open(&settings, Keys::new(PlainHash), RuntimeChoice::Best);
            store.ready(Duration::from_secs(10)).await.expect("a server that answers");
            stores.push(Arc::new(store));
            networks.push(network);
        }
    }
    let window = FixedWindow::new(1_000_000, Millis::new(60_000), Anchor::FirstRequest);
    let limit = Limit::new("requests", Algorithm::FixedWindow(window.expect("a window")));
    let limit = Arc::new(limit.expect("a limit"));
    let machine = MachineDelay::start();
    let (mut decisions, start) = (JoinSet::new(), Instant::now());
    let count = rate * u32::try_from(RUN.as_secs()).expect("few");
    for number in 0..count {
        let store = Arc::clone(&stores[number as usize % (NODES * SHARDS)]);
        let limit = Arc::clone(&limit);
        decisions.spawn(async move {
            sleep_until(start + Duration::from_secs(1) * number / rate).await;
            let begun = Instant::now();
            let subject = Subject::new([("id", Value::Clear(&number.to_be_bytes()))], &PlainHash);
            let id = ChargeId(u128::from(number));
            let operation = Operation::Charge { cost: Cost::ONE, id };
            let charge = Charge { limit: &limit, subject: &subject, operation };
            let now = Timestamp::from_millis(1_700_000_000_000);
            let answer = store.apply_within(now, &[charge], DEFAULT_DEADLINE).await;
            (answer.is_ok(), begun.elapsed())
        });
    }
    let outcomes = decisions.join_all().await;
    let alone = outcomes.iter().filter(|(is_decided, _)| !is_decided).count();
    let mut delays = machine.end();
    let mut times: Vec<_> = outcomes.into_iter().map(|(_, taken)| taken).collect();
    println!(
        "| {:.1} ms | {} | {rate} | {:.2} % | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms |",
        latency.one_way.as_secs_f64() * 2_000.0,
        if latency.stall_every > 0 { "1 % by 500 ms" } else { "none" },
        alone as f64 * 100.0 / f64::from(count),
        percentile(&mut times, 50),
        percentile(&mut times, 99),
        percentile(&mut delays, 99),
        percentile(&mut delays, 100),
    );
}

/// Returns the percentile `percent` of `times`, in milliseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}

/// Measures how late this machine wakes up threads, with a thread that sleeps for 1 ms at a time.
/// The other measured times contain this delay. If the delay exceeds the deadline of a decision,
/// the node's fallback makes the decision.
struct MachineDelay {
    has_ended: Arc<AtomicBool>,
    delays: JoinHandle<Vec<Duration>>,
}

impl MachineDelay {
    fn start() -> Self {
        let has_ended = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&has_ended);
        let delays = thread::spawn(move || {
            let pause = Duration::from_millis(1);
            let mut delays = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                let slept = std::time::Instant::now();
                thread::sleep(pause);
                delays.push(slept.elapsed().saturating_sub(pause));
            }
            delays
        });
        Self { has_ended, delays }
    }

    fn end(self) -> Vec<Duration> {
        self.has_ended.store(true, Ordering::Relaxed);
        self.delays.join().expect("a thread that only sleeps")
    }
}
