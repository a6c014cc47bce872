//! Inputs that try to exhaust resources: announced lengths, floods, replies that are never read.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use tollgate::store::memory::Memory;
use tollgate_server::resp::{MAX_ARGS, MAX_BULK, MAX_COMMAND, MAX_INLINE};
use tollgate_server::{ConnectionLimits, RespSettings};

use crate::resp::kit::{Open, PATIENCE, command};

const TOO_BIG: &str = "-ERR Protocol error: too big command|";
const NO_ARRAY: &str = "-ERR Protocol error: invalid multibulk length|";
const NO_BULK: &str = "-ERR Protocol error: invalid bulk length|";
const NESTED: &str = "-ERR Protocol error: expected '$', got '*'|";
const ENDLESS: &str = "-ERR Protocol error: too big inline request|";
const QUOTES: &str = "-ERR Protocol error: unbalanced quotes in request|";

#[test]
fn bombs_are_refused() {
    let word = "x".repeat(MAX_BULK);
    let words = vec![&*word; MAX_ARGS];
    let whole = format!("${MAX_BULK}\r\n{word}\r\n");
    let bombs = [
        ("an array of billions", "*2147483647\r\n".to_owned(), NO_ARRAY),
        ("an array of one too many", format!("*{}\r\n", MAX_ARGS + 1), NO_ARRAY),
        ("a word of half a gigabyte", "*1\r\n$536870912\r\n".to_owned(), NO_BULK),
        ("a word of one byte too many", format!("*1\r\n${}\r\n", MAX_BULK + 1), NO_BULK),
        ("arrays in arrays in arrays", "*1\r\n".repeat(10_000), NESTED),
        ("a number without an end", format!("*{}", "1".repeat(100_000)), NO_ARRAY),
        ("a length without an end", format!("*1\r\n${}", "1".repeat(100_000)), NO_BULK),
        ("a line without an end", "x".repeat(MAX_INLINE), ENDLESS),
        ("a quote without an end", format!("\"{}\n", "x".repeat(MAX_INLINE - 2)), QUOTES),
        ("a line of a thousand words", format!("{}\n", "a ".repeat(1_000)), NO_ARRAY),
        (
            "words that are too long together",
            format!("*{MAX_ARGS}\r\n{}", whole.repeat(5)),
            TOO_BIG,
        ),
        ("every bound reached at once", { String::from_utf8(command(&words)).unwrap() }, TOO_BIG),
        ("a flood of nothing", format!("{}PING\r\n", "\r\n*0\r\n".repeat(100_000)), "+PONG|"),
    ];
    assert_eq!(bombs.len(), 13);
    let open = Open::new();
    for (name, bytes, printed) in bombs {
        assert_eq!(open.printed(bytes), printed, "{name}");
    }
}

#[test]
fn the_longest_command_is_none() {
    let word = "x".repeat(MAX_BULK - 1);
    let open = Open::new();
    let described = command(&["PING", &word, &word, &word]);
    assert!(described.len() < MAX_COMMAND);
    let printed = "-ERR wrong number of arguments for 'ping' command|";
    assert_eq!(open.printed(&described), printed);
}

#[test]
fn short_questions_with_long_answers_wait_for_who_takes_them() {
    let open = Open::new();
    let one = open.printed("COMMAND\r\n");
    let printed = open.printed("COMMAND\r\n".repeat(1_000));
    assert_eq!(printed, one.repeat(1_000));
}

#[test]
fn who_takes_no_replies_loses_the_connection() {
    let limits = ConnectionLimits {
        request: Duration::from_millis(50),
        idle: PATIENCE,
        ..ConnectionLimits::default()
    };
    let open = Open::over(Memory::default(), RespSettings { limits, ..RespSettings::default() });
    let mut stream = std::net::TcpStream::connect(&open.address).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let described = command(&["ECHO", &"x".repeat(MAX_BULK)]);
    // More than the socket buffers can hold: the listener stops reading, and then closes the
    // connection.
    let gone = (0..100_000).find_map(|_| stream.write_all(&described).err());
    let kind = gone.map(|error| error.kind());
    assert!(matches!(kind, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)), "{kind:?}");
    assert_eq!(open.printed("PING\r\n"), "+PONG|");
}
