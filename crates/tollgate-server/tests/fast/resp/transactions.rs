//! `MULTI`, `EXEC` and `DISCARD`, as pipelines of redis-py, ioredis and node-redis send them.

use tollgate_server::resp::MAX_QUEUED;

use crate::resp::kit::{Open, TOKEN, command};

const THROTTLE: [&str; 5] = ["CL.THROTTLE", "key", "5", "60", "60"];
const PEEK: [&str; 6] = ["CL.THROTTLE", "key", "5", "60", "60", "0"];

fn sent(commands: &[&[&str]]) -> Vec<u8> {
    commands.iter().flat_map(|words| command(words)).collect()
}

#[test]
fn a_pipeline_of_redis_py_is_a_transaction() {
    let open = Open::new();
    let sent = sent(&[&["MULTI"], &THROTTLE, &["PING"], &THROTTLE, &["EXEC"], &PEEK]);
    let expected = "+OK|+QUEUED|+QUEUED|+QUEUED|*3|*5|:0|:6|:5|:-1|:1|+PONG|*5|:0|:6|:4|:-1|:2|\
                    *5|:0|:6|:4|:-1|:2|";
    assert_eq!(open.printed(sent), expected);
}

#[test]
fn an_error_while_commands_are_queued_charges_nothing() {
    let open = Open::new();
    let aborted = "-EXECABORT Transaction discarded because of previous errors.|";
    for (wrong, error) in [
        (&["GET", "key"][..], "-ERR unknown command 'GET', with args beginning with: 'key' |"),
        (&["ECHO"], "-ERR wrong number of arguments for 'echo' command|"),
        (&["MULTI"], "-ERR MULTI calls can not be nested|"),
        (&["HELLO", "3"], "-ERR Command not allowed inside a transaction|"),
        (
            &["EVAL", "return redis.call('CL.THROTTLE', KEYS[1], 5, 60, 60)", "1", "key"],
            "-ERR scripts are not supported: send CL.THROTTLE as a command of its own, or several \
             of them between MULTI and EXEC|",
        ),
    ] {
        let sent = sent(&[&["MULTI"], &THROTTLE, wrong, &["EXEC"], &PEEK]);
        let untouched = "*5|:0|:6|:6|:-1|:0|";
        assert_eq!(open.printed(sent), format!("+OK|+QUEUED|{error}{aborted}{untouched}"));
    }
}

#[test]
fn an_error_of_a_queued_command_is_its_own_reply() {
    let open = Open::new();
    let wrong = ["CL.THROTTLE", "key", "x", "60", "60"];
    let printed = open.printed(sent(&[&["MULTI"], &wrong, &THROTTLE, &["EXEC"]]));
    assert!(printed.starts_with("+OK|+QUEUED|+QUEUED|*2|-"), "{printed}");
    assert!(printed.ends_with("|*5|:0|:6|:5|:-1|:1|"), "{printed}");
}

#[test]
fn what_is_discarded_or_never_executed_charges_nothing() {
    let open = Open::new();
    let printed = open.printed(sent(&[&["MULTI"], &THROTTLE, &["DISCARD"], &["EXEC"]]));
    assert_eq!(printed, "+OK|+QUEUED|+OK|-ERR EXEC without MULTI|");
    assert_eq!(open.printed(sent(&[&["DISCARD"]])), "-ERR DISCARD without MULTI|");
    assert_eq!(
        open.printed(sent(&[&["MULTI"], &THROTTLE, &["RESET"], &["EXEC"]])),
        "+OK|+QUEUED|+RESET|-ERR EXEC without MULTI|"
    );
    assert_eq!(open.printed(sent(&[&["MULTI"], &THROTTLE, &["QUIT"]])), "+OK|+QUEUED|+OK|");
    assert_eq!(open.printed(sent(&[&PEEK])), "*5|:0|:6|:6|:-1|:0|");
}

#[test]
fn a_transaction_that_is_too_large_is_aborted() {
    let open = Open::new();
    let mut sent = command(&["MULTI"]);
    (0..=MAX_QUEUED).for_each(|_| sent.extend(command(&THROTTLE)));
    sent.extend(command(&["EXEC"]));
    let printed = open.printed(sent);
    let error = "-ERR the transaction is too large: send at most 1024 commands and 262144 bytes \
                 before EXEC|-EXECABORT Transaction discarded because of previous errors.|";
    assert_eq!(printed, format!("+OK|{}{error}", "+QUEUED|".repeat(MAX_QUEUED)));
}

#[test]
fn a_transaction_needs_a_token_like_any_command() {
    let open = Open::with_token();
    let denied = "-NOAUTH Authentication required.|";
    let sent = sent(&[&["MULTI"], &THROTTLE, &["EXEC"], &["AUTH", TOKEN], &["EXEC"]]);
    assert_eq!(open.printed(sent), format!("{}+OK|-ERR EXEC without MULTI|", denied.repeat(3)));
}
