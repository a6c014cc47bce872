//! Idempotency keys: a repeated request gets the same response and is charged once.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tollgate::Clock;
use tollgate::model::{Charge, Millis, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;
use tollgate_server::http::{HttpOptions, MAX_REMEMBERED, MAX_REMEMBERED_PER_CALLER};
use tollgate_server::{Access, Peer, Tokens};

use crate::http::world::{Answered, World};

fn charge(cost: u64) -> String {
    json!({ "limits": [{ "name": "everybody", "cost": cost }] }).to_string()
}

async fn send(world: &World, key: &str, body: String) -> Answered {
    world.post_with("/v1/check", &[("idempotency-key", key)], body).await
}

async fn used(world: &World) -> Value {
    world.post("/v1/peek", charge(0)).await.ok()["statuses"][0]["used"].clone()
}

#[tokio::test]
async fn the_same_key_and_body_are_one_charge() {
    let world = World::new();
    let first = send(&world, "one", charge(5)).await;
    let again = send(&world, "one", charge(5)).await;
    assert_eq!(first.ok(), again.ok());
    assert_eq!(first.headers.get("idempotency-replayed"), None);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(used(&world).await, 5);
    send(&world, "two", charge(5)).await.ok();
    assert_eq!(used(&world).await, 10);
}

#[tokio::test]
async fn clients_with_tokens_of_their_own_have_keys_of_their_own() {
    let tokens = ["0123456789abcdef", "fedcba9876543210"];
    let access = Access::Tokens(Tokens::parse(&tokens.join("\n")).unwrap());
    let world = World::over(Memory::default(), HttpOptions { access, ..HttpOptions::default() });
    let send = async |token: &str, cost| {
        let bearer = format!("Bearer {token}");
        let fields = [("idempotency-key", "one"), ("authorization", &*bearer)];
        world.post_with("/v1/check", &fields, charge(cost)).await
    };
    for (token, cost, used) in [(tokens[0], 5, 5), (tokens[1], 6, 11), (tokens[0], 5, 5)] {
        let answer = send(token, cost).await.ok();
        assert_eq!(answer["statuses"][0]["used"], used, "{token} {cost}");
    }
    assert_eq!(send(tokens[1], 5).await.problem(422), "idempotency-key-reused");
}

#[tokio::test]
async fn another_body_or_path_needs_another_key() {
    let world = World::new();
    send(&world, "one", charge(5)).await.ok();
    assert_eq!(send(&world, "one", charge(6)).await.problem(422), "idempotency-key-reused");
    let key = [("idempotency-key", "one")];
    let elsewhere = world.post_with("/v1/check/batch", &key, charge(5)).await;
    assert_eq!(elsewhere.problem(422), "idempotency-key-reused");
    assert_eq!(used(&world).await, 5);
}

#[tokio::test]
async fn problems_are_repeated_too() {
    let world = World::new();
    let wrong = || send(&world, "one", "{}".to_owned());
    assert_eq!(wrong().await.bytes, wrong().await.bytes);
    assert_eq!(wrong().await.problem(400), "invalid-request");
}

#[tokio::test]
async fn keys_expire() {
    let world = World::new();
    send(&world, "one", charge(5)).await.ok();
    world.clock.advance(Millis::new(59_999));
    send(&world, "one", charge(5)).await.ok();
    assert_eq!(used(&world).await, 5);
    world.clock.advance(Millis::new(1));
    // The window has ended as well.
    let fresh = send(&world, "one", charge(6)).await.ok();
    assert_eq!(fresh["statuses"][0]["used"], 6);
}

#[tokio::test]
async fn keys_expire_after_the_clock_was_set_back() {
    let world = World::new();
    send(&world, "one", charge(0)).await.ok();
    let hour_ago = world.clock.now().as_millis() - 3_600_000;
    world.clock.set(Timestamp::from_millis(hour_ago));
    send(&world, "two", charge(0)).await.ok();
    send(&world, "one", charge(1)).await.ok();
    world.clock.advance(Millis::from_secs(60));
    send(&world, "two", charge(1)).await.ok();
}

#[tokio::test]
async fn keys_are_bounded_and_none_in_force_is_forgotten() {
    let world = World::new();
    for key in 0..MAX_REMEMBERED {
        send(&world, &key.to_string(), charge(0)).await.ok();
    }
    let refused = send(&world, "one more", charge(1)).await;
    assert_eq!(refused.problem(400), "invalid-idempotency-key");
    let refused = send(&world, "one-more", charge(1)).await;
    assert_eq!(refused.problem(503), "too-many-idempotency-keys");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(send(&world, "0", charge(0)).await.headers["idempotency-replayed"], "true");
    assert_eq!(used(&world).await, 0);
    world.clock.advance(Millis::from_secs(60));
    send(&world, "one-more", charge(1)).await.ok();
}

#[tokio::test]
async fn the_keys_of_one_token_leave_room_for_those_of_others() {
    let tokens = ["0123456789abcdef", "fedcba9876543210"];
    let access = Access::Tokens(Tokens::parse(&tokens.join("\n")).unwrap());
    let world = World::over(Memory::default(), HttpOptions { access, ..HttpOptions::default() });
    let send = async |token: &str, key: &str| {
        let bearer = format!("Bearer {token}");
        let fields = [("idempotency-key", key), ("authorization", &*bearer)];
        world.post_with("/v1/check", &fields, charge(0)).await
    };
    for key in 0..MAX_REMEMBERED_PER_CALLER {
        send(tokens[0], &key.to_string()).await.ok();
    }
    let refused = send(tokens[0], "one-more").await;
    assert_eq!(refused.problem(503), "too-many-idempotency-keys");
    send(tokens[1], "one-more").await.ok();
    world.clock.advance(Millis::from_secs(60));
    send(tokens[0], "one-more").await.ok();
}

/// Sends a charge with an unverified token over a connection from `peer`.
async fn unverified(world: &World, token: &str, key: &str, peer: Option<&str>) -> Answered {
    let mut request = Request::post("/v1/check")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"))
        .header("idempotency-key", key);
    if let Some(address) = peer {
        request = request.extension(Peer(Some(SocketAddr::new(address.parse().unwrap(), 1))));
    }
    world.call(request.body(Body::from(charge(1))).unwrap()).await
}

/// The bug: on a listener without tokens, invented tokens had room for further keys.
#[tokio::test]
async fn tokens_that_nobody_verifies_made_room_for_further_keys() {
    let (world, peer) = (World::new(), Some("192.0.2.1"));
    for number in 0..MAX_REMEMBERED_PER_CALLER {
        unverified(&world, &number.to_string(), "key", peer).await;
    }
    let refused = unverified(&world, "one-more", "key", peer).await;
    assert_eq!(refused.problem(503), "too-many-idempotency-keys");
    let again = unverified(&world, "0", "key", peer).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    world.clock.advance(Millis::from_secs(60));
    unverified(&world, "one-more", "key", peer).await.ok();
}

/// The bug: on a listener without tokens, the field `authorization` was ignored, so callers that
/// another layer of the program authenticates received the receipts of each other.
#[tokio::test]
async fn callers_that_another_layer_authenticates_shared_their_keys() {
    for peer in [None, Some("127.0.0.1"), Some("192.0.2.1")] {
        let world = World::new();
        unverified(&world, "one", "key", peer).await.ok();
        let other = unverified(&world, "other", "key", peer).await;
        assert_eq!(other.headers.get("idempotency-replayed"), None, "{peer:?}");
        assert_eq!(used(&world).await, 2, "{peer:?}");
        let again = unverified(&world, "other", "key", peer).await;
        assert_eq!(again.headers["idempotency-replayed"], "true", "{peer:?}");
    }
}

/// The bug: on a listener without tokens, one machine received the receipts of another one, and
/// could use all keys.
#[tokio::test]
async fn callers_of_different_machines_shared_their_keys() {
    let world = World::new();
    let (one, other) = (Some("192.0.2.1"), Some("192.0.2.2"));
    unverified(&world, "a", "0", one).await.ok();
    let answered = unverified(&world, "a", "0", other).await;
    assert_eq!(answered.headers.get("idempotency-replayed"), None);
    assert_eq!(used(&world).await, 2);
    for key in 1..MAX_REMEMBERED_PER_CALLER {
        unverified(&world, "a", &key.to_string(), one).await;
    }
    let refused = unverified(&world, "a", "one-more", one).await;
    assert_eq!(refused.problem(503), "too-many-idempotency-keys");
    unverified(&world, "a", "one-more", other).await.ok();
}

/// The bug: over IPv6, one machine has many addresses, and each one had room for further keys.
#[tokio::test]
async fn addresses_of_one_ipv6_network_made_room_for_further_keys() {
    let world = World::new();
    let (one, neighbour) = (Some("2001:db8::1"), Some("2001:db8::ffff:0:0:2"));
    unverified(&world, "a", "0", one).await.ok();
    // The network can be that of several machines, so their keys remain separate.
    let answered = unverified(&world, "a", "0", neighbour).await;
    assert_eq!(answered.headers.get("idempotency-replayed"), None);
    assert_eq!(used(&world).await, 2);
    for number in 2..MAX_REMEMBERED_PER_CALLER {
        unverified(&world, "a", &number.to_string(), one).await;
    }
    let refused = unverified(&world, "a", "one-more", neighbour).await;
    assert_eq!(refused.problem(503), "too-many-idempotency-keys");
    unverified(&world, "a", "one-more", Some("2001:db8:0:1::1")).await.ok();
}

/// A store that answers when the test allows it.
struct Slow {
    memory: Memory,
    requested: Arc<Semaphore>,
    let_go: Arc<Semaphore>,
}

impl Store for Slow {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.requested.add_permits(1);
        self.let_go.acquire().await.unwrap().forget();
        self.memory.apply(now, charges).await
    }
}

fn slow() -> (World, Arc<Semaphore>, Arc<Semaphore>) {
    let (requested, let_go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (memory, store_asked, store_let_go) =
        (Memory::default(), requested.clone(), let_go.clone());
    let store = Slow { memory, requested: store_asked, let_go: store_let_go };
    (World::over(store, HttpOptions::default()), requested, let_go)
}

#[tokio::test]
async fn a_repetition_waits_for_the_first_that_is_under_way() {
    let (world, requested, let_go) = slow();
    let first = send(&world, "one", charge(5));
    let again = async {
        requested.acquire().await.unwrap().forget();
        let again = send(&world, "one", charge(5));
        let let_it = async { let_go.add_permits(1) };
        tokio::join!(again, let_it).0
    };
    let (first, again) = tokio::join!(first, again);
    assert_eq!(first.ok(), again.ok());
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let_go.add_permits(1);
    assert_eq!(used(&world).await, 5);
}

#[tokio::test]
async fn who_went_away_is_charged_once_and_can_ask_again() {
    let (world, requested, let_go) = slow();
    tokio::select! {
        biased;
        _ = send(&world, "one", charge(5)) => panic!("nobody let it"),
        _ = requested.acquire() => {}
    }
    let_go.add_permits(2);
    send(&world, "one", charge(5)).await.ok();
    assert_eq!(used(&world).await, 5);
}
