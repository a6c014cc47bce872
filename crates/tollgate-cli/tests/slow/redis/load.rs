//! Clients that send requests to a proxy continuously.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::support::world::{Answer, Proxy};

/// The number of clients of each shard.
const CLIENTS: usize = 4;

/// Clients with limits on two shards.
pub(crate) struct Load {
    /// The counts for the clients of each shard.
    answered: Arc<[AtomicUsize; 2]>,
    ends: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<(usize, Answer)>>>,
}

impl Load {
    /// Starts the same number of clients for each of the two tokens.
    pub(crate) fn start(proxy: &Arc<Proxy>, tokens: &[String; 2]) -> Self {
        let (answered, ends) = (Arc::<[AtomicUsize; 2]>::default(), Arc::<AtomicBool>::default());
        let client = |number: usize| {
            let (proxy, shard) = (Arc::clone(proxy), number % 2);
            let (answered, ends) = (Arc::clone(&answered), Arc::clone(&ends));
            let token = tokens[shard].clone();
            thread::spawn(move || {
                let mut answers = Vec::new();
                while !ends.load(Ordering::Relaxed) {
                    answers.push((shard, proxy.get("/", &[&token])));
                    answered[shard].fetch_add(1, Ordering::Relaxed);
                }
                answers
            })
        };
        let clients = (0..2 * CLIENTS).map(client).collect();
        Self { answered, ends, clients }
    }

    /// Waits until the clients of each shard have received this number of further responses.
    pub(crate) fn passes(&self, requests: usize) {
        let answered = || self.answered.each_ref().map(|shard| shard.load(Ordering::Relaxed));
        let enough = answered().map(|before| before + requests);
        while answered().iter().zip(enough).any(|(now, enough)| *now < enough) {
            assert!(!self.clients.iter().any(JoinHandle::is_finished), "a client had no answer");
            thread::yield_now();
        }
    }

    /// Returns all responses, each with the number of its shard.
    pub(crate) fn stop(self) -> Vec<(usize, Answer)> {
        self.ends.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}

/// Returns the used units in the responses of this shard, in ascending order.
pub(crate) fn used(answers: &[(usize, Answer)], shard: usize) -> Vec<u64> {
    let mut used: Vec<u64> = answers
        .iter()
        .filter(|(of, _)| *of == shard)
        .map(|(_, answer)| answer.field("x-ratelimit-used").parse().unwrap())
        .collect();
    used.sort_unstable();
    used
}
