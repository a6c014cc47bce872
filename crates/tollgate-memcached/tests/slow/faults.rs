//! A real server that freezes, stops, loses data, or runs out of memory.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use crate::kit::{PATIENCE, Server, connected, patient, subject, take, window};
use tokio::time::timeout;
use tollgate_conformance::{Figure, assert_held};
use tollgate_core::{Charge, Limit, Millis, Readings, Refusals, Timestamp};
use tollgate_memcached::{Address, LinkLimits, Memcached, MemcachedError, ServerSettings};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);
const PAUSE: Duration = Duration::from_millis(1);

/// While the server is frozen, each call is answered by its deadline. After a few missed deadlines,
/// calls no longer wait for the server.
#[tokio::test]
async fn a_frozen_server_makes_nobody_wait_for_long() {
    let server = Server::start();
    let store = server.store().await;
    let limit = limit();
    assert_eq!(take_one(&store, &limit, PATIENCE).await.unwrap()[0].used, 1);
    server.freeze();
    // The server does not freeze immediately, so a last answer may still arrive.
    let (mut answered, mut unknown) = (1, 0);
    let given_up = async {
        loop {
            match take_one(&store, &limit, Duration::from_millis(15)).await {
                Ok(_) => answered += 1,
                Err(MemcachedError::TimedOut) => unknown += 1,
                Err(MemcachedError::Unavailable) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    timeout(PATIENCE, given_up).await.expect("callers stop waiting");
    let misses = u64::from(patient().misses) * server.settings().connections.get() as u64;
    assert!((1..=misses).contains(&unknown), "{unknown} of {misses} waited");
    server.thaw();
    // Commands that were written before the server continued may have been charged late. Other
    // commands were not charged.
    let used = until_answered(&store, &limit).await[0].used;
    assert!(
        (answered + 1..=answered + 1 + unknown).contains(&used),
        "{used} used, {unknown} unknown"
    );
}

/// After the server stops and returns without data, windows start again, and the store detects the
/// loss.
#[tokio::test]
async fn a_restart_begins_windows_again_and_is_noticed() {
    let mut server = Server::start();
    let store = server.store().await;
    let limit = limit();
    for used in 1..=3 {
        assert_eq!(take_one(&store, &limit, PATIENCE).await.unwrap()[0].used, used);
    }
    server.kill();
    let lost = async {
        while take_one(&store, &limit, PATIENCE).await.err() != Some(MemcachedError::Unavailable) {}
    };
    timeout(PATIENCE, lost).await.expect("callers stop waiting");
    server.revive();
    let used = until_answered(&store, &limit).await[0].used;
    let restarts = store.status().losses.restarts;
    assert_held(&[
        Figure::fault_seen("restarts reported", restarts),
        Figure::at_most("restarts reported that were none", restarts - 1, 0),
        Figure::at_most("windows begun anew", u64::from(used == 1), restarts),
    ]);
    assert!(store.status().last_error.is_some());
}

#[tokio::test]
async fn being_reported_to_forget_everything_is_noticed() {
    let server = Server::start();
    let store = watched(&server).await;
    let limit = limit();
    take_one(&store, &limit, PATIENCE).await.unwrap();
    // memcached flushes items that are older than its clock, and its clock ticks once a second.
    let forgotten = async {
        let (mut before, mut anew) = (1, 0);
        while anew == 0 {
            assert_eq!(server.execute("flush_all"), ["OK"]);
            tokio::time::sleep(PAUSE).await;
            let used = take_one(&store, &limit, PATIENCE).await.unwrap()[0].used;
            anew += u64::from(used <= before);
            before = used;
        }
        anew
    };
    let anew = timeout(PATIENCE, forgotten).await.expect("the server forgets");
    noticed(|| store.status().losses.flushes > 0).await;
    let flushes = store.status().losses.flushes;
    assert_held(&[
        Figure::fault_seen("flushes told", flushes),
        Figure::at_most("windows begun anew", anew, flushes),
    ]);
}

/// A server without free memory drops current windows. Its statistics show the evictions.
#[tokio::test]
async fn evictions_begin_windows_again_and_are_noticed() {
    let server = Server::start_with(&["-m", "1", "-I", "512k"]);
    let store = watched(&server).await;
    let limit = limit();
    assert_eq!(take_one(&store, &limit, PATIENCE).await.unwrap()[0].used, 1);
    assert_eq!(take_one(&store, &limit, PATIENCE).await.unwrap()[0].used, 2);
    flood(&server.address(), 400_000);
    noticed(|| store.status().losses.evicted > 0).await;
    let used = take_one(&store, &limit, PATIENCE).await.unwrap()[0].used;
    assert_eq!(used, 1, "it was dropped");
    let losses = store.status().losses;
    assert_held(&[
        Figure::fault_seen("items dropped, and told", losses.evicted),
        Figure::at_most("windows begun anew", u64::from(used == 1), losses.evicted),
        Figure::at_most("restarts reported that were none", losses.restarts, 0),
    ]);
}

/// A server that never evicts items rejects new items when its memory is full, and nothing is
/// charged.
#[tokio::test]
async fn a_full_server_admits_nobody_new() {
    let server = Server::start_with(&["-m", "1", "-I", "512k", "-M"]);
    let store = server.store().await;
    let limit = limit();
    assert_eq!(take_one(&store, &limit, PATIENCE).await.unwrap()[0].used, 1);
    flood(&server.address(), 400_000);
    let stranger = subject("stranger");
    let refused = store.apply_within(NOW, &[take(&limit, &stranger)], PATIENCE).await;
    assert_held(&[
        Figure::fault_seen(
            "charges refused for want of memory",
            matches!(refused, Err(MemcachedError::Full)).into(),
        ),
        Figure::at_most("units admitted to somebody new", refused.is_ok().into(), 0),
    ]);
}

/// A refused call charges only limits that count refusals. If that charge fails, there is nothing
/// to refund.
#[tokio::test]
async fn a_refused_call_that_fails_gives_back_nothing_that_it_did_not_take() {
    let server = Server::start();
    let address = without_writes_of(server.address(), "hammered");
    let link = LinkLimits { proven_after: Duration::ZERO, ..patient() };
    let store = connected(&ServerSettings { address, link, ..server.settings() }).await;
    let hour = Millis::from_secs(3_600);
    let (subject, core) = (subject("a"), window("core", 2, hour));
    let hammered = window("hammered", 9, hour).with_refusals(Refusals::Counted).unwrap();
    let apply = async |charges: &[Charge<'_>]| store.apply_within(NOW, charges, PATIENCE).await;
    for _ in 0..2 {
        assert!(apply(&[take(&core, &subject)]).await.unwrap().all_admitted());
    }
    for _ in 0..3 {
        let refused = apply(&[take(&core, &subject), take(&hammered, &subject)]).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    let again = apply(&[take(&core, &subject)]).await.unwrap();
    assert_eq!((again.all_admitted(), again[0].used), (false, 2));
    assert_eq!(store.status().unrefunded, 0);
}

/// Starts a proxy to `server` that closes a connection as soon as the connection contains a write
/// of an item of `limit`. Returns the address of the proxy.
fn without_writes_of(server: Address, limit: &str) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let ends = format!("ms tg1:{limit}").into_bytes();
    std::thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            let far = TcpStream::connect(server.to_string()).expect("a connection");
            let (back, ends) = ((far.try_clone(), near.try_clone()), ends.clone());
            let (Ok(from), Ok(to)) = back else { continue };
            std::thread::spawn(move || carry(from, to, |_| true));
            let may_pass = move |bytes: &[u8]| !bytes.windows(ends.len()).any(|part| part == ends);
            std::thread::spawn(move || carry(near, far, may_pass));
        }
    });
    Address::Tcp { host: "127.0.0.1".into(), port }
}

/// Forwards bytes while `may_pass` returns true, and closes both connections at the first bytes for
/// which `may_pass` returns false.
fn carry(mut from: TcpStream, mut to: TcpStream, may_pass: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !may_pass(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn limit() -> Limit {
    window("core", 5_000, Millis::from_secs(3_600))
}

/// Returns a store that requests the server's statistics often.
async fn watched(server: &Server) -> Memcached {
    let link = LinkLimits { heartbeat: Duration::from_millis(5), ..patient() };
    connected(&ServerSettings { link, ..server.settings() }).await
}

async fn take_one(
    store: &Memcached,
    limit: &Limit,
    within: Duration,
) -> Result<Readings, MemcachedError> {
    let subject = subject("a");
    let charges = [take(limit, &subject)];
    let took = store.apply_within(NOW, &charges, within);
    timeout(within + PATIENCE, took).await.expect("an answer by the deadline")
}

async fn until_answered(store: &Memcached, limit: &Limit) -> Readings {
    let answered = async {
        loop {
            match take_one(store, limit, PATIENCE).await {
                Ok(readings) => return readings,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    timeout(PATIENCE, answered).await.expect("the server is found again")
}

async fn noticed(is_so: impl Fn() -> bool) {
    let noticing = async {
        while !is_so() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, noticing).await.expect("it is noticed");
}

/// Stores `count` items, each with the size of a limit's item.
fn flood(address: &Address, count: u32) {
    let mut stream = TcpStream::connect(address.to_string()).expect("a connection");
    let mut commands = Vec::new();
    for number in 0..count {
        let value = "v".repeat(15);
        write!(commands, "set flood:with-a-long-name:{number:010} 0 600 15 noreply\r\n{value}\r\n")
            .expect("room");
    }
    stream.write_all(&commands).expect("a server that reads");
    stream.write_all(b"mn\r\n").expect("a server that reads");
    // Errors because of a lack of memory arrive first.
    let mut answers = std::io::BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with("MN") {
        line.clear();
        std::io::BufRead::read_line(&mut answers, &mut line).expect("an answer");
    }
}
