//! The start and the end of connections: incomplete commands, silence, and shutdown.

use std::time::Duration;

use tollgate::store::memory::Memory;
use tollgate_server::{ConnectionLimits, RespSettings};

use crate::resp::kit::{AT_ONCE, Open, PATIENCE, command};

const SOON: Duration = Duration::from_millis(50);

fn impatient(limits: ConnectionLimits) -> Open {
    Open::over(Memory::default(), RespSettings { limits, ..RespSettings::default() })
}

#[test]
fn a_command_that_is_not_finished_in_time_ends_its_connection_and_no_other() {
    let open = impatient(ConnectionLimits { request: SOON, idle: PATIENCE, ..Default::default() });
    let healthy = open.client();
    let charge = command(&["CL.THROTTLE", "key", "1", "1", "60"]);
    let slow: Vec<_> = (1..charge.len())
        .map(|length| {
            let client = open.client();
            client.send_line(&charge[..length]);
            client
        })
        .collect();
    for client in slow {
        assert_eq!(client.until_closed(), "");
    }
    healthy.send_line("PING\r\n");
    healthy.receive_reply("+PONG\r\n");
}

#[test]
fn who_sends_a_byte_now_and_then_has_no_more_time() {
    let open = impatient(ConnectionLimits { request: SOON, idle: PATIENCE, ..Default::default() });
    let client = open.client();
    client.send_line("PING\r\n*2\r\n$4\r\nECHO\r\n$65536\r\n");
    client.receive_reply("+PONG\r\n");
    std::thread::scope(|scope| {
        let received = scope.spawn(|| client.until_closed());
        // At this rate, the argument would take a minute.
        while !received.is_finished() {
            client.send_line("x");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(received.join().unwrap(), "");
    });
}

#[test]
fn silence_ends_a_connection() {
    let open = impatient(ConnectionLimits { request: PATIENCE, idle: SOON, ..Default::default() });
    let client = open.client();
    assert_eq!(client.until_closed(), "");
}

#[test]
fn who_was_idle_for_longest_leaves_a_full_listener_to_who_comes() {
    let open = Open::new();
    // One after the other, so each has been idle for less time than those before it, on slow
    // machines, too.
    let answered = |_| {
        let client = open.client();
        client.send_line("PING\r\n");
        client.receive_reply("+PONG\r\n");
        client
    };
    let clients: Vec<_> = (0..=AT_ONCE).map(answered).collect();
    assert_eq!(clients[0].until_closed(), "");
}

#[test]
fn the_end_of_the_process_answers_what_came_and_closes() {
    let mut open = Open::new();
    let (idle, busy, half) = (open.client(), open.client(), open.client());
    for client in [&idle, &busy, &half] {
        client.send_line("PING\r\n");
        client.receive_reply("+PONG\r\n");
    }
    half.send_line("*1\r\n$4\r\nPI");
    busy.send_line(command(&["CL.THROTTLE", "key", "0", "1", "60"]).repeat(100));
    busy.receive_reply("*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n");
    open.end();
    let refused = "*5|:1|:1|:0|:60|:60|".repeat(99);
    assert_eq!(busy.until_closed(), refused);
    assert_eq!((idle.until_closed(), half.until_closed()), (String::new(), String::new()));
    assert_eq!(open.ended(), Ok(()));
}

#[test]
fn quit_is_answered_and_what_follows_is_not() {
    let open = Open::new();
    let client = open.client();
    client.send_line("PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(client.until_closed(), "+PONG|+OK|");
}
