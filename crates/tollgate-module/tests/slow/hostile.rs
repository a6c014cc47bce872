//! Arguments that no node sends. The server reports an error, changes nothing, and continues to
//! run.

use redis::Value;
use redis::aio::MultiplexedConnection;

use crate::kit::{Version, on_every_version};
use crate::loaded::{dump, start};

const CASES: u64 = 4_000;
const COMMANDS: [&str; 4] = ["TOLLGATE.STEP", "TOLLGATE.TIGHT", "TOLLGATE.LOOK", "TOLLGATE.APPLY"];
const NOW: u64 = 1_700_000_000_000;

on_every_version! {
    hostile_arguments_get_an_error_and_change_nothing
    values_of_others_are_not_misread
}

/// A generator of pseudorandom numbers, which are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        self.0 >> 33
    }
}

fn number(number: u64) -> [u8; 7] {
    let mut bytes = [0; 7];
    bytes.copy_from_slice(&number.to_le_bytes()[..7]);
    bytes
}

/// Returns the argument of a command with two charges of one unit: one in a table, and one in a
/// key.
fn argument(kind: u8) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend(number(0));
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([kind, 0]);
    [10, 60_000, 1_000, 5_000].map(number).iter().for_each(|number| bytes.extend(number));
    bytes.extend([1_u32, 2].map(u32::to_le_bytes).concat());
    bytes.extend([&[1, 0][..], b"abcdefghij", &[2, 0]].concat());
    for place in [1_u32, 2] {
        bytes.extend(number(NOW));
        bytes.extend(1_u32.to_le_bytes());
        bytes.push(if kind == 6 { 2 } else { 1 });
        bytes.extend([1_u32.to_le_bytes(), place.to_le_bytes()].concat());
        bytes.extend(number(1));
        if kind == 6 {
            bytes.extend([9; 16]);
        }
    }
    bytes
}

async fn send(
    connection: &mut MultiplexedConnection,
    command: &str,
    argument: &[u8],
    keys: &[&str],
) -> Result<Vec<u8>, redis::RedisError> {
    redis::cmd(command).arg(argument).arg(keys).query_async(connection).await
}

async fn hostile_arguments_get_an_error_and_change_nothing(version: Version) {
    let server = start(version, &[]).await;
    let mut connection = server.connect().await;
    for kind in 1..=6 {
        let reply =
            send(&mut connection, COMMANDS[0], &argument(kind), &["tg1:table#0", "tg1:key"]).await;
        assert!(reply.is_ok(), "{kind}: {reply:?}");
    }
    let mut before = dump(&mut connection).await;
    let mut numbers = Numbers(7);
    let mut rejected = 0;
    for case in 0..CASES {
        let mut bytes = argument(1 + (case % 6) as u8);
        for _ in 0..1 + numbers.next() % 3 {
            let at = numbers.next() as usize % bytes.len();
            match numbers.next() % 4 {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = 0xff,
                2 => bytes[at] = numbers.next() as u8,
                _ => bytes.insert(at, numbers.next() as u8),
            }
        }
        let command = COMMANDS[numbers.next() as usize % COMMANDS.len()];
        let reply = send(&mut connection, command, &bytes, &["tg1:table#0", "tg1:key"]).await;
        let after = dump(&mut connection).await;
        if let Err(error) = reply {
            assert!(!error.to_string().contains("defect"), "{command} {bytes:?}");
            assert_eq!(after, before, "{command} {bytes:?}: {error}");
            rejected += 1;
        }
        before = after;
    }
    assert!(rejected > CASES / 4, "only {rejected} were rejected");
    for command in COMMANDS {
        let twice = send(&mut connection, command, &argument(1), &["tg1:a", "tg1:a"]).await;
        assert!(twice.is_err(), "{command}");
        let bare = redis::cmd(command).query_async::<Value>(&mut connection).await;
        assert!(bare.is_err(), "{command}");
    }
    let reads = send(&mut connection, "TOLLGATE.LOOK", &argument(1), &["tg1:b#0", "tg1:c"]).await;
    assert!(reads.unwrap_err().to_string().contains("only reads"));
}

/// If a key for one state has a value of another type, that counts as discarded state, as for the
/// Lua step. If the key of a table has another value, the command fails, because replacing the
/// value would lose the data of other subjects.
async fn values_of_others_are_not_misread(version: Version) {
    let server = start(version, &[]).await;
    let mut connection = server.connect().await;
    let mut numbers = Numbers(11);
    for value in [&b"text"[..], b"", b"tgt1", &[b"tgt1".as_slice(), &[0; 40]].concat()] {
        redis::cmd("SET").arg("tg1:table#0").arg(value).exec_async(&mut connection).await.unwrap();
        let reply =
            send(&mut connection, COMMANDS[0], &argument(1), &["tg1:table#0", "tg1:key"]).await;
        assert!(reply.unwrap_err().to_string().contains("not a table"), "{value:?}");
        server.execute(&["DEL", "tg1:table#0"]).await;
    }
    server.execute(&["RPUSH", "tg1:table#0", "x"]).await;
    let list = send(&mut connection, COMMANDS[0], &argument(1), &["tg1:table#0", "tg1:k"]).await;
    assert!(list.unwrap_err().to_string().contains("not a table"));
    server.execute(&["DEL", "tg1:table#0"]).await;
    server.execute(&["RPUSH", "tg1:key", "x"]).await;
    let reply = send(&mut connection, COMMANDS[0], &argument(1), &["tg1:table#0", "tg1:key"]).await;
    assert_eq!(reply.unwrap().len(), 8 + 2 * 37);
    server.assert_every_key_ends().await;
    // Tables of random bytes give wrong answers at worst, and never crash the server.
    for _ in 0..200 {
        let mut table = b"tgt1".to_vec();
        table.extend((0..32 * 12 - 4).map(|_| numbers.next() as u8));
        redis::cmd("SET").arg("tg1:table#0").arg(&table).exec_async(&mut connection).await.unwrap();
        let reply =
            send(&mut connection, COMMANDS[0], &argument(1), &["tg1:table#0", "tg1:key"]).await;
        let text = reply.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!text.contains("defect"), "{text}");
    }
}
