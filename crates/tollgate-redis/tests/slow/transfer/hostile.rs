//! Invalid cells, cells on a server without free memory, and cells that are too long for one key.

use redis::aio::MultiplexedConnection;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, concurrency, fixed_window, sliding_log,
};
use tollgate_core::decide::ReservedCell;
use tollgate_core::{
    Admission, Algorithm, Cell, CellKey, CellTransfer, Charge, ChargeId, ChargePosition, Cost,
    Limit, Millis, OnExpiry, Operation, Refusals, Reservation, ReservationTerms, Store, StoreError,
    Subject, Timestamp, Value, decide,
};
use tollgate_redis::{Keys, RuntimeChoice};

use crate::kit::Server;
use crate::transfer::store;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const WINDOW: Millis = Millis::from_secs(3_600);
/// A number of records that is above the maximum for one subject in one key.
const MANY: u64 = 10_000;

fn subject(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}

fn limit(algorithm: Algorithm) -> Limit {
    Limit::new("core", algorithm).unwrap()
}

fn window() -> Limit {
    limit(Algorithm::FixedWindow(FixedWindow::new(1_000, WINDOW, Anchor::FirstRequest).unwrap()))
}

fn window_of(used: u64) -> Cell {
    Cell::FixedWindow(fixed_window::State { used, resets_at: NOW.after(WINDOW) })
}

/// Returns a command that joins `bytes` into the first key, for a fixed window of 1,000 units per
/// hour.
fn joining(bytes: &[u8]) -> Vec<u8> {
    let number = |number: u64| number.to_le_bytes()[..7].to_vec();
    let index = |index: usize| (index as u32).to_le_bytes().to_vec();
    let limit = [vec![1, 0], number(1_000), number(WINDOW.get()), number(0), number(5_000)];
    let job = [number(NOW.as_millis()), index(1), vec![13], index(1), index(1), number(0)];
    [vec![0], number(0), index(1), limit.concat(), job.concat(), index(bytes.len()), bytes.to_vec()]
        .concat()
}

/// Runs the step's function with `argument` on `key`.
async fn call(
    connection: &mut MultiplexedConnection,
    key: &[u8],
    argument: &[u8],
) -> redis::RedisResult<Vec<u8>> {
    let list: redis::Value =
        redis::cmd("FUNCTION").arg("LIST").query_async(connection).await.unwrap();
    let list = format!("{list:?}");
    let name = &list[list.find("tollgate_v1_").expect("the library")..];
    let name: String =
        name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    redis::cmd("FCALL").arg(name).arg(1).arg(key).arg(argument).query_async(connection).await
}

#[tokio::test]
async fn bytes_that_are_no_cell_are_an_error_and_change_nothing() {
    let server = Server::start().await;
    let (store, mut connection) =
        (store(&server, RuntimeChoice::Best).await, server.connect().await);
    let (limit, subject) = (window(), subject(0));
    let place = CellKey { limit: &limit, subject: &subject };
    let key = Keys::new(PlainHash).name(&limit, &subject);
    let right = window_of(7).to_bytes();
    call(&mut connection, &key, &joining(&right)).await.expect("a cell is joined");
    let kept = Ok(vec![Some(window_of(7))]);
    assert_eq!(store.cells(NOW, &[place]).await, kept);
    let mut wrong: Vec<Vec<u8>> = (0..right.len()).map(|size| right[..size].to_vec()).collect();
    wrong.push([&right[..], b"\0"].concat());
    for letter in b"wetlcrx0" {
        wrong.push([&[*letter][..], &right[1..]].concat());
        wrong.push([&[*letter][..], &vec![0xff; 420_000]].concat());
    }
    wrong.push([&b"f"[..], &[0xff; 14]].concat());
    for bytes in &wrong {
        call(&mut connection, &key, &joining(bytes)).await.expect_err("no cell");
    }
    let whole = joining(&right);
    for size in 0..whole.len() {
        // This command contains only limits and no jobs.
        let _ = call(&mut connection, &key, &whole[..size]).await;
    }
    assert_eq!(store.cells(NOW, &[place]).await, kept);
}

#[tokio::test]
async fn without_memory_what_is_kept_is_joined_and_new_keys_are_reported() {
    for choice in [RuntimeChoice::Best, RuntimeChoice::Script] {
        let server = Server::start_with(&["--maxmemory-policy", "noeviction"]).await;
        let store = store(&server, choice).await;
        let (limit, kept, new) = (window(), subject(0), subject(1));
        let place = |subject| CellKey { limit: &limit, subject };
        store.join(NOW, &[(place(&kept), window_of(7))]).await.unwrap();
        server.execute(&["CONFIG", "SET", "maxmemory", "1"]).await;
        for used in 8..100 {
            assert_eq!(store.join(NOW, &[(place(&kept), window_of(used))]).await, Ok(()));
            let full = store.join(NOW, &[(place(&new), window_of(used))]).await;
            assert_eq!(full, Err(StoreError::Full), "{choice:?}");
            let cells = store.cells(NOW, &[place(&kept), place(&new)]).await;
            assert_eq!(cells, Ok(vec![Some(window_of(used)), None]), "{choice:?}");
        }
    }
}

/// Joins two cells that each have the maximum length for a key and have no record in common.
#[tokio::test]
async fn of_lists_that_are_too_long_the_last_records_stay_and_the_limit_is_full() {
    let server = Server::start().await;
    let store = store(&server, RuntimeChoice::Best).await;
    let entry = |number: u64| sliding_log::Entry { at: at(number), used: 1 };
    let log = |first: u64| {
        let entries = (0..MANY).map(|number| entry(first + 2 * number)).collect();
        Cell::SlidingLog(sliding_log::State { entries })
    };
    let lease = |number: u64| {
        let (id, expires_at) = (ChargeId(number.into()), at(number).after(WINDOW));
        concurrency::Permit { id, used: 1, expires_at }
    };
    let leases = |first: u64| {
        let leases = (0..MANY).map(|number| lease(first + 2 * number)).collect();
        Cell::Concurrency(concurrency::State { permits: leases })
    };
    let last_entries = (MANY..2 * MANY).map(entry).collect();
    let last_leases = (MANY..2 * MANY).map(lease).collect();
    for (algorithm, [one, other], last) in [
        (
            Algorithm::SlidingLog(SlidingLog::new(MANY, WINDOW).unwrap()),
            [log(0), log(1)],
            Cell::SlidingLog(sliding_log::State { entries: last_entries }),
        ),
        (
            Algorithm::Concurrency(Concurrency::new(MANY, WINDOW).unwrap()),
            [leases(0), leases(1)],
            Cell::Concurrency(concurrency::State { permits: last_leases }),
        ),
    ] {
        let (limit, subject) = (limit(algorithm), subject(0));
        let place = CellKey { limit: &limit, subject: &subject };
        store.join(NOW, &[(place, one), (place, other)]).await.unwrap();
        assert!(store.cells(NOW, &[place]).await == Ok(vec![Some(last)]), "{limit:?}");
        let operation = Operation::Peek { cost: Cost::ONE };
        let charge = Charge { limit: &limit, subject: &subject, operation };
        let look = store.apply(NOW, &[charge]).await.unwrap()[0];
        assert_ne!(look.admission, Admission::Now, "{limit:?}");
        assert_eq!(look.used, MANY, "{limit:?}");
    }
}

/// Settles a reservation above its cost, and counts a refused charge, in a log with as many entries
/// as fit in one key. The states equal those of the core.
#[tokio::test]
async fn the_longest_log_stays_as_long_as_in_the_core() {
    let terms = ReservationTerms { overdraft: 10, ..ReservationTerms::default() };
    let log = limit(Algorithm::SlidingLog(SlidingLog::new(MANY, WINDOW).unwrap()));
    let log = log.with_reservation_terms(terms).unwrap().with_refusals(Refusals::Counted).unwrap();
    let entries = (0..MANY).map(|number| sliding_log::Entry { at: at(number), used: 1 }).collect();
    let position = ChargePosition(at(0).as_millis());
    let (until, on_expiry) = (NOW.after(WINDOW), OnExpiry::Release);
    let reservations = vec![Reservation { id: ChargeId(1), units: 1, position, until, on_expiry }];
    let cell = Cell::SlidingLog(sliding_log::State { entries });
    let full = Cell::Reserved(Box::new(ReservedCell { cell, reservations }));
    for choice in [RuntimeChoice::Best, RuntimeChoice::Script] {
        let server = Server::start().await;
        let (store, subject) = (store(&server, choice).await, subject(0));
        let place = CellKey { limit: &log, subject: &subject };
        store.join(NOW, &[(place, full.clone())]).await.unwrap();
        let mut expected = full.clone();
        for operation in [
            Operation::Settle { id: ChargeId(1), position, cost: Cost::up_to(4) },
            Operation::Charge { cost: Cost::ONE, id: ChargeId(2) },
            Operation::Charge { cost: Cost::up_to(5), id: ChargeId(3) },
        ] {
            let charge = Charge { limit: &log, subject: &subject, operation };
            let answered = store.apply(NOW, &[charge]).await.unwrap()[0];
            let (reading, next) = decide(Some(expected), &log, operation, NOW);
            assert_eq!((answered.used, answered.added), (reading.used, reading.added));
            expected = next.unwrap();
            assert!(store.cells(NOW, &[place]).await == Ok(vec![Some(expected.clone())]));
        }
    }
}

/// Returns the time of the entry or permit with this number. All of these times are in the past,
/// but still count.
fn at(number: u64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() - 2 * MANY + number)
}
