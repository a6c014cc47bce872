//! Tests that stored values are validated before use, and that every key that is written has an
//! expiry.

use crate::kit::Server;
use redis::aio::MultiplexedConnection;
use tollgate_conformance::trace::random_limit;
use tollgate_conformance::{Figure, PlainHash, Random, assert_held};
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, Cost, Deduplication, Limit, Millis, Operation, Reading,
    Refusals, Store, StoredState, Subject, Timestamp, Value,
};
use tollgate_redis::{Keys, Redis, RuntimeChoice};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

async fn store(server: &Server) -> Redis {
    Redis::new(server.connect().await, Keys::new(PlainHash), RuntimeChoice::Best).await.unwrap()
}

fn subject(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}

/// Returns one limit of each algorithm, in the order in which random limits are numbered.
fn limits() -> Vec<Limit> {
    let mut random = Random::new(7);
    (0..8).map(|kind| random_limit(&mut random, kind, &format!("kind{kind}"))).collect()
}

fn fixed(quota: u64) -> Limit {
    let window = FixedWindow::new(quota, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

async fn apply_one(
    store: &Redis,
    limit: &Limit,
    subject: &Subject,
    now: Timestamp,
    operation: Operation,
) -> Reading {
    store.apply(now, &[Charge { limit, subject, operation }]).await.unwrap()[0]
}

const fn take(cost: Cost) -> Operation {
    Operation::Charge { cost, id: ChargeId(1) }
}

async fn put(connection: &mut MultiplexedConnection, key: &[u8], bytes: &[u8]) {
    redis::cmd("SET").arg(key).arg(bytes).exec_async(connection).await.unwrap();
}

/// Returns values that no step of this version writes.
fn junk() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = [
        "",
        "0",
        "-1",
        "7",
        "nan",
        "inf",
        "1e300",
        " 1700000000000000001",
        "0x10000000",
        "1700000000000.00001",
        "01700000000000000001",
        "17000036:0000000001",
        "170000360000e000007",
        "1700003600000000-01",
        "99999999999999999999",
        "9999999999999999999",
        "9223372036854775807",
        "-9223372036854775808",
        "1700000000e9",
        "fjunk",
        "w",
        "\u{0}",
        "{}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    for tag in b"fweltcrx" {
        for length in [1, 7, 14, 21, 30, 140] {
            all.push([&[*tag][..], &vec![0xff; length]].concat());
        }
        all.push([&[*tag][..], &vec![0xff; 400_000]].concat());
    }
    // The first series of blocks is out of order. The second series has an empty block that is not
    // its newest block.
    all.push(b"w\x09\0\0\0\0\0\0\x01\0\0\0\0\0\0\x08\0\0\0\0\0\0\x01\0\0\0\0\0\0".to_vec());
    all.push(b"w\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\x01\0\0\0\0\0\0".to_vec());
    all
}

#[tokio::test]
async fn junk_counts_as_no_state_and_is_reported() {
    let server = Server::start().await;
    let (store, mut connection) = (store(&server).await, server.connect().await);
    let keys = Keys::new(PlainHash);
    let (mut discarded, mut written) = (0, 0);
    for limit in &limits() {
        for (number, bytes) in (0..).zip(junk()) {
            let subject = subject(number);
            put(&mut connection, &keys.name(limit, &subject), &bytes).await;
            let peek = apply_one(&store, limit, &subject, NOW, take(Cost::PEEK)).await;
            assert_eq!((peek.admission, peek.used), (Admission::Now, 0), "{limit:?} {bytes:?}");
            assert_eq!(peek.found, StoredState::Discarded, "{limit:?} {bytes:?}");
            let first = apply_one(&store, limit, &subject, NOW, take(Cost::ONE)).await;
            assert_eq!((first.admission, first.used), (Admission::Now, 1), "{limit:?} {bytes:?}");
            discarded += u64::from(first.found == StoredState::Discarded);
            let after = apply_one(&store, limit, &subject, NOW, take(Cost::PEEK)).await;
            assert_eq!((after.used, after.found), (1, StoredState::Present), "{limit:?} {bytes:?}");
            written += 1;
        }
    }
    assert_held(&[
        Figure::fault_seen("values of junk that were told", discarded),
        Figure::at_most("values of junk that counted, or were not told", written - discarded, 0),
    ]);
}

#[tokio::test]
async fn keys_of_another_type_are_replaced() {
    let server = Server::start().await;
    let (store, mut connection) = (store(&server).await, server.connect().await);
    let keys = Keys::new(PlainHash);
    for limit in &limits() {
        for (number, make) in (0..).zip(["HSET {} f 1", "LPUSH {} 1", "SADD {} 1", "ZADD {} 1 m"]) {
            let subject = subject(number);
            let mut command = redis::Cmd::new();
            for word in make.split(' ') {
                match word {
                    "{}" => command.arg(&*keys.name(limit, &subject)),
                    word => command.arg(word),
                };
            }
            command.exec_async(&mut connection).await.unwrap();
            let first = apply_one(&store, limit, &subject, NOW, take(Cost::ONE)).await;
            assert_eq!((first.admission, first.used), (Admission::Now, 1), "{limit:?} {make}");
            assert_eq!(first.found, StoredState::Discarded, "{limit:?} {make}");
        }
    }
}

#[tokio::test]
async fn a_window_is_exact_past_what_its_integer_holds() {
    let server = Server::start().await;
    let store = store(&server).await;
    let (limit, subject) = (fixed((1 << 53) - 1), subject(0));
    let mut used = 0;
    for cost in [999_998, 1, 1, 1, 1_000_000, (1 << 53) - 3_000_000, 1] {
        used += cost;
        let cost = Cost::new(cost).unwrap();
        let reading = apply_one(&store, &limit, &subject, NOW, take(cost)).await;
        assert_eq!((reading.admission, reading.used), (Admission::Now, used));
        assert_eq!(reading.full_reset_at.as_millis(), NOW.as_millis() + 3_600_000);
    }
    let back = Operation::Refund {
        cost: Cost::new(used - 5).unwrap(),
        position: tollgate_core::ChargePosition(NOW.as_millis() + 3_600_000),
        id: ChargeId(1),
        deduplication: Deduplication::Unneeded,
    };
    let reading = apply_one(&store, &limit, &subject, NOW, back).await;
    assert_eq!((reading.refunded, reading.used), (used - 5, 5));
}

#[tokio::test]
async fn every_key_ends_after_what_it_stores_and_not_much_later() {
    let server = Server::start().await;
    let (store, mut connection) = (store(&server).await, server.connect().await);
    for limit in &limits() {
        for number in 0..20 {
            let (id, subject) = (ChargeId(u128::from(number)), subject(number));
            let taken =
                apply_one(&store, limit, &subject, NOW, Operation::Charge { cost: Cost::ONE, id })
                    .await;
            let (cost, position, deduplication) = (Cost::ONE, taken.position, Deduplication::ById);
            if number % 2 == 0 {
                let back = Operation::Refund { cost, position, id, deduplication };
                apply_one(&store, limit, &subject, NOW, back).await;
            }
        }
    }
    let names: Vec<Vec<u8>> =
        redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert!(names.len() > 100, "only {} keys", names.len());
    for name in names {
        let live: i64 = redis::cmd("PTTL").arg(&name).query_async(&mut connection).await.unwrap();
        let text = String::from_utf8_lossy(&name).into_owned();
        let kind = text.split(':').nth(1).unwrap();
        let limit = limits().into_iter().find(|limit| limit.name() == kind).unwrap();
        let longest = 2 * limit.window().get() + limit.skew_max().get();
        assert!(live > 0 && live as u64 <= longest, "{text} lives for {live} of {longest} ms");
    }
}

#[tokio::test]
async fn an_argument_that_is_cut_short_changes_nothing() {
    let server = Server::start().await;
    let (store, mut connection) = (store(&server).await, server.connect().await);
    let limit = fixed(10).with_refusals(Refusals::Counted).unwrap();
    let subject = subject(0);
    apply_one(&store, &limit, &subject, NOW, take(Cost::ONE)).await;
    let key = Keys::new(PlainHash).name(&limit, &subject);
    let functions: Vec<redis::Value> =
        redis::cmd("FUNCTION").arg("LIST").query_async(&mut connection).await.unwrap();
    let name = format!("{functions:?}");
    let from = name.find("tollgate_v1_").expect("the library");
    let name: String =
        name[from..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let before: String = redis::cmd("GET").arg(&*key).query_async(&mut connection).await.unwrap();
    let mut random = Random::new(11);
    for _ in 0..2_000 {
        let length = random.within(0..=120) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        // Fixed bytes let some inputs get as far as the jobs: no deadline, one limit, small
        // indexes.
        for (place, byte) in bytes.iter_mut().enumerate() {
            if place < 12 || random.chance(50) {
                *byte = u8::from(place == 8);
            }
        }
        // Most of the calls return an error. The test checks the keys after the calls.
        let _ = redis::cmd("FCALL")
            .arg(&name)
            .arg(1)
            .arg(&*key)
            .arg(&bytes)
            .exec_async(&mut connection)
            .await;
        let after: String =
            redis::cmd("GET").arg(&*key).query_async(&mut connection).await.unwrap();
        assert_eq!(after, before, "{bytes:?}");
    }
}
