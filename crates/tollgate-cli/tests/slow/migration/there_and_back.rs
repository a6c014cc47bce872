//! From one store to another and back, under load: by the policy file and by administrators.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate_conformance::{Figure, assert_held};

use crate::kit::{Server as Redis, module_file};
use crate::memcached::Server as Memcached;
use crate::migration::site::{
    Site, at, charge, in_memcached, in_redis, node, rollout, status, turn,
};
use crate::support::client::Client;
use crate::support::node::{Node, PATIENCE};

/// Concurrent clients, and the tokens of each. A client waits for each response before the next
/// request with the same token, which makes the count of each token exact.
const CLIENTS: u64 = 4;
const TOKENS: u64 = 6;

/// The number of charges of each token during which the percentage changes once.
const STEP: u64 = 12;
/// The number of changes of the percentage: to 30, to 100, and back to 0.
const TURNS: u64 = 3;
const QUOTA: u64 = (TURNS + 1) * STEP;
/// The number of charges beyond the quota.
const BEYOND: u64 = 3;

/// The decisions on the charges of one token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    admitted: u64,
    refused: u64,
    resets: BTreeSet<u64>,
}

/// The number of charges that clients may send, and the number that all clients have sent.
#[derive(Default)]
struct Pace {
    allowed: AtomicU64,
    charged: AtomicU64,
}

impl Pace {
    /// Allows `more` charges for each token, and calls `turned` while clients send the first half
    /// of them. The second half begins after this call, so each token is also charged after the
    /// change.
    fn go_on(&self, more: u64, turned: impl FnOnce()) {
        let allowed = self.allowed.fetch_add(more / 2, Ordering::Relaxed);
        self.reaches((allowed + more / 4) * CLIENTS * TOKENS);
        turned();
        self.allowed.fetch_add(more - more / 2, Ordering::Relaxed);
        self.reaches((allowed + more) * CLIENTS * TOKENS);
    }

    fn reaches(&self, charges: u64) {
        wait(|| self.charged.load(Ordering::Relaxed) >= charges);
    }
}

fn wait(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "clients do not get on");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Charges these tokens in turn at the given pace until the end of the move.
fn client(node: &Node, tokens: Range<u64>, pace: &Pace) -> Vec<Account> {
    let mut client = Client::connect(node.listener("http")).unwrap();
    let names: Vec<_> = tokens.map(|token| format!("t{token}")).collect();
    let mut accounts = vec![Account::default(); names.len()];
    for round in 0..QUOTA + BEYOND {
        wait(|| pace.allowed.load(Ordering::Relaxed) > round);
        for (name, account) in names.iter().zip(&mut accounts) {
            let response = charge(&mut client, name);
            account.admitted += u64::from(response.is_admitted);
            account.refused += u64::from(!response.is_admitted);
            account.resets.insert(response.reset);
            pace.charged.fetch_add(1, Ordering::Relaxed);
        }
    }
    accounts
}

/// Whether the end of a token's window, as responses report it, is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    /// The end does not change.
    Fixed,
    /// The end moves with each charge.
    Moving,
}

/// Each token is admitted exactly its quota in one window, whichever store decided.
fn goes_there_and_back(from: &str, to: &str) {
    moves(from, to, "window: 1h", Reset::Fixed);
}

/// Works like [`goes_there_and_back`], with the settings `limit` of the limit.
fn moves(from: &str, to: &str, limit: &str, reset: Reset) {
    let site = Site::new();
    let limit = format!("quota: {QUOTA}, {limit}");
    let policy = |percent| site.policy_of("policy.yaml", &limit, &rollout(percent, from, to));
    let path = policy(0);
    let node = node(&path);
    let pace = Pace::default();
    let accounts: Vec<Account> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let tokens = number * TOKENS..(number + 1) * TOKENS;
                let (node, pace) = (&node, &pace);
                scope.spawn(move || client(node, tokens, pace))
            })
            .collect();
        pace.go_on(STEP, || {
            policy(30);
            node.signal("-HUP");
            node.wait_for_log("the policy file changed the rollout");
        });
        assert_eq!(status(&node)["counts"]["percent"], 30);
        pace.go_on(STEP, || assert_eq!(turn(&node, 100), 30));
        let arrived = status(&node)["counts"]["transferred"].as_u64().unwrap();
        assert!(arrived >= CLIENTS * TOKENS, "{arrived}: nobody was left behind");
        pace.go_on(STEP, || assert_eq!(turn(&node, 0), 100));
        pace.go_on(STEP + BEYOND, || {});
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    for account in &accounts {
        assert_eq!(account.admitted + account.refused, QUOTA + BEYOND, "{accounts:?}");
    }
    let response = status(&node);
    let counts = &response["counts"];
    for of in ["transfer_failures", "refund_failures"] {
        assert_eq!(counts[of], 0, "{of}: {response}");
    }
    for side in ["from", "to"] {
        assert_eq!(counts[side]["counts"]["fallback_decisions"], 0, "{side}: {response}");
    }
    let most = |of: fn(&Account) -> u64| accounts.iter().map(of).max().unwrap();
    let mut figures = vec![
        Figure::fault_seen("windows moved", counts["transferred"].as_u64().unwrap()),
        Figure::at_most(
            "units above a client's limit",
            most(|it| it.admitted.saturating_sub(QUOTA)),
            0,
        ),
        Figure::at_most(
            "refusals below the limit",
            most(|it| it.refused.saturating_sub(BEYOND)),
            0,
        ),
    ];
    if reset == Reset::Fixed {
        let windows = most(|it| it.resets.len() as u64);
        figures.push(Figure::at_most("windows of a client", windows, 1));
    }
    assert_held(&figures);
}

#[tokio::test]
async fn from_memcached_to_redis() {
    let (old, new) = (Memcached::start(), Redis::start().await);
    goes_there_and_back(&in_memcached(&old), &in_redis(&new));
}

#[tokio::test]
async fn from_one_redis_to_another() {
    let (old, new) = (Redis::start().await, Redis::start().await);
    goes_there_and_back(&in_redis(&old), &in_redis(&new));
}

/// Limits that together use each layout of the module's data: tables, and both forms of separate
/// keys.
const LIMITS: [(&str, Reset); 4] = [
    ("window: 1h", Reset::Fixed),
    ("algorithm: sliding_window, window: 24h, precision: 1h", Reset::Moving),
    ("algorithm: token_bucket, window: 24h", Reset::Moving),
    ("algorithm: sliding_log, window: 24h", Reset::Moving),
];

#[tokio::test]
async fn from_keys_to_tables() {
    for (limit, reset) in LIMITS {
        let (old, new) = (Redis::start().await, with_module().await);
        moves(&at(&old.url(), "function"), &at(&new.url(), "tables"), limit, reset);
    }
}

#[tokio::test]
async fn from_tables_to_keys() {
    for (limit, reset) in LIMITS {
        let (old, new) = (with_module().await, Redis::start().await);
        moves(&at(&old.url(), "tables"), &at(&new.url(), "function"), limit, reset);
    }
}

/// Two databases of one server are two stores.
#[tokio::test]
async fn from_keys_to_tables_in_another_database() {
    for (limit, reset) in LIMITS {
        let server = with_module().await;
        let other = format!("{}/1", server.url());
        moves(&at(&server.url(), "auto"), &at(&other, "tables"), limit, reset);
    }
}

/// Starts a server that has loaded the module.
async fn with_module() -> Redis {
    Redis::start_with(&["--loadmodule", &module_file()]).await
}
