//! A primary dies under load, and its replica takes over.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::fleet::Fleet;
use crate::world::{Answer, Proxy};

const LIMITS: &str = "
limits: { core: { quota: 1_000_000, window: 1h, per: token } }
rules: [{ limits: core }]
answers: { headers: github }";

/// The clients of each shard, and the requests in which each phase of an outage is seen.
const CLIENTS: usize = 4;
const REQUESTS: usize = 400;

#[tokio::test]
async fn a_primary_that_dies_under_load_fails_no_request() {
    let mut fleet = Fleet::start().await;
    let proxy = Arc::new(Proxy::start(&fleet.policy(LIMITS, "deadline: 10s")));
    let tokens = [fleet.token_on(0, &proxy).await, fleet.token_on(1, &proxy).await];
    fleet.primaries[0].is_followed().await;
    let load = Load::start(&proxy, &tokens);
    load.passes(REQUESTS);

    fleet.primaries[0].kill();
    load.passes(REQUESTS);
    let told = proxy.tells("no primary answers");
    assert!(told.contains("shard=\"a\""), "{told}");

    fleet.replicas[0].promote().await;
    let told = proxy.tells("connected to");
    assert!(told.contains(&fleet.replicas[0].url()), "{told}");
    load.passes(REQUESTS);

    let answers = load.stop();
    let mut statuses: HashMap<u16, usize> = HashMap::new();
    answers.iter().for_each(|(_, answer)| *statuses.entry(answer.status).or_default() += 1);
    assert!(statuses.keys().all(|status| *status == 200), "{statuses:?}");
    // The other shard counted on, each request once.
    let mut used: Vec<u64> = answers
        .iter()
        .filter(|(shard, _)| *shard == 1)
        .map(|(_, answer)| answer.field("x-ratelimit-used").parse().unwrap())
        .collect();
    used.sort_unstable();
    let first = used[0];
    assert_eq!(used, (first..first + used.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_replica_goes_on_from_what_was_replicated() {
    let mut fleet = Fleet::start().await;
    let proxy = Proxy::start(&fleet.policy(LIMITS, "deadline: 10s"));
    let token = fleet.token_on(0, &proxy).await;
    let used = |answer: &Answer| answer.field("x-ratelimit-used").to_owned();
    for expected in 2..=10 {
        assert_eq!(used(&proxy.get("/", &[&token])), expected.to_string());
    }
    let reset = proxy.get("/", &[&token]).field("x-ratelimit-reset").to_owned();
    fleet.primaries[0].is_followed().await;
    fleet.primaries[0].kill();
    fleet.replicas[0].promote().await;
    while !proxy.tells("connected to").contains(&fleet.replicas[0].url()) {}
    let answer = proxy.get("/", &[&token]);
    assert_eq!(answer.status, 200);
    assert_eq!((used(&answer), answer.field("x-ratelimit-reset")), ("12".into(), &*reset));
}

/// Clients that ask again and again.
struct Load {
    answered: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<(usize, Answer)>>>,
}

impl Load {
    fn start(proxy: &Arc<Proxy>, tokens: &[String; 2]) -> Self {
        let (answered, ends) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let client = |number: usize| {
            let (proxy, shard) = (Arc::clone(proxy), number % 2);
            let (answered, ends) = (Arc::clone(&answered), Arc::clone(&ends));
            let token = tokens[shard].clone();
            thread::spawn(move || {
                let mut answers = Vec::new();
                while !ends.load(Ordering::Relaxed) {
                    answers.push((shard, proxy.get("/", &[&token])));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                answers
            })
        };
        let clients = (0..2 * CLIENTS).map(client).collect();
        Self { answered, ends, clients }
    }

    /// Waits for so many more answers.
    fn passes(&self, requests: usize) {
        let enough = self.answered.load(Ordering::Relaxed) + requests;
        while self.answered.load(Ordering::Relaxed) < enough {
            assert!(!self.clients.iter().any(JoinHandle::is_finished), "a client had no answer");
            thread::yield_now();
        }
    }

    fn stop(self) -> Vec<(usize, Answer)> {
        self.ends.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}
