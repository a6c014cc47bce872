//! Commands that concern the connection.

use tollgate::store::Memory;
use tollgate_server::resp::{MAX_WRONG_TOKENS, RespSettings};
use tollgate_server::{Access, Tokens};

use crate::resp::kit::{Open, TOKEN};

const NO_AUTH: &str = "-NOAUTH Authentication required.|";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.|";

#[test]
fn small_talk() {
    let open = Open::new();
    for (described, printed) in [
        ("PING", "+PONG|"),
        ("ping hello", "$5|hello|"),
        ("ECHO \"a b\"", "$3|a b|"),
        ("SELECT 0", "+OK|"),
        ("SELECT 1", "-ERR DB index is out of range|"),
        ("SELECT x", "-ERR value is not an integer or out of range|"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK|"),
        ("CLIENT SETINFO lib-ver 8.1.0", "+OK|"),
        ("CLIENT SETINFO lib-age 1", "-ERR Unrecognized option 'lib-age'|"),
        ("CLIENT GETNAME", "$-1|"),
        (
            "CLIENT SETNAME \"a b\"",
            "-ERR Client names cannot contain spaces, newlines or special characters.|",
        ),
        ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command|"),
        ("CLIENT KILL 1", "-ERR unknown subcommand 'KILL'. Try CLIENT HELP.|"),
        ("COMMAND COUNT", ":23|"),
        ("COMMAND INFO nonsense", "*1|*-1|"),
        ("COMMAND DOCS nonsense", "*0|"),
        ("COMMAND GETKEYS a", "-ERR unknown subcommand 'GETKEYS'. Try COMMAND HELP.|"),
        ("FLUSHALL now", "-ERR unknown command 'FLUSHALL', with args beginning with: 'now' |"),
        ("ECHO", "-ERR wrong number of arguments for 'echo' command|"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command|"),
        ("RESET", "+RESET|"),
        ("QUIT", "+OK|"),
        (
            "AUTH anything",
            "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?|",
        ),
        ("AUTH default anything", "+OK|"),
        ("AUTH a b c", "-ERR syntax error|"),
        ("HELLO 4", "-NOPROTO unsupported protocol version|"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range|"),
        ("HELLO 3 NOW", "-ERR Syntax error in HELLO option 'NOW'|"),
    ] {
        assert_eq!(open.printed(format!("{described}\r\n")), printed, "{described}");
    }
}

#[test]
fn a_probe_for_the_command_is_answered_as_of_a_module() {
    let open = Open::new();
    assert_eq!(
        open.printed("COMMAND INFO CL.THROTTLE\r\n"),
        "*1|*10|$11|cl.throttle|:-1|*2|+write|+fast|:1|:1|:1|*0|*0|*0|*0|"
    );
    let docs = open.printed("COMMAND DOCS throttle\r\n");
    assert!(docs.starts_with("*2|$8|throttle|*4|$7|summary|"), "{docs}");
}

#[test]
fn info_says_what_clients_look_for() {
    let info = Open::new().printed("INFO everything\r\n");
    for line in ["|redis_version:7.4.0|", "|loading:0|", "|role:master|", "|tollgate_version:"] {
        assert!(info.contains(line), "{info}");
    }
}

#[test]
fn hello_chooses_the_version() {
    let open = Open::new();
    let client = open.client();
    client.send_line(
        "HELLO 3 SETNAME me\r\nCLIENT GETNAME\r\nECHO a\r\nRESET\r\nCLIENT GETNAME\r\nHELLO\r\n",
    );
    let printed = client.rest();
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        printed.starts_with(&format!(
            "%7|$6|server|$8|tollgate|$7|version|$5|{version}|$5|proto|:3|$2|id|:"
        )),
        "{printed}"
    );
    assert!(printed.contains("|$7|modules|*0|$2|me|$1|a|+RESET|$-1|*14|$6|server|"), "{printed}");
    assert!(printed.contains("|$5|proto|:2|"), "{printed}");
}

#[test]
fn nobody_gets_past_the_token() {
    let open = Open::with_token();
    for described in [
        "PING",
        "CL.THROTTLE a 1 1 1",
        "TG.CHARGE core 1 token a",
        "INFO",
        "COMMAND",
        "CLIENT ID",
        "SELECT 0",
        "ECHO a",
        "NONSENSE",
        "TG.REFUND a",
        "TG.STANDING token a",
    ] {
        assert_eq!(open.printed(format!("{described}\r\n")), NO_AUTH, "{described}");
    }
    assert!(open.printed("HELLO 3\r\n").starts_with("-NOAUTH HELLO must be called"));
    for wrong in ["AUTH wrong", "AUTH default wrong", "AUTH \"\"", "HELLO 3 AUTH default wrong"] {
        assert_eq!(
            open.printed(format!("{wrong}\r\nPING\r\n")),
            format!("{WRONG}{NO_AUTH}"),
            "{wrong}"
        );
    }
}

#[test]
fn a_token_opens_for_any_user_until_the_connection_is_reset() {
    let open = Open::with_token();
    for described in
        [format!("AUTH {TOKEN}"), format!("AUTH default {TOKEN}"), format!("auth me {TOKEN}")]
    {
        let printed = open.printed(format!("{described}\r\nPING\r\nRESET\r\nPING\r\n"));
        assert_eq!(printed, format!("+OK|+PONG|+RESET|{NO_AUTH}"), "{described}");
    }
    let printed = open.printed(format!("HELLO 2 AUTH default {TOKEN}\r\nPING\r\n"));
    assert!(printed.starts_with("*14|") && printed.ends_with("+PONG|"), "{printed}");
}

#[test]
fn a_token_that_was_withdrawn_opens_nothing_any_more() {
    const ANOTHER: &str = "fedcba9876543210";
    let tokens = Tokens::parse(&format!("{TOKEN}\n{ANOTHER}")).unwrap();
    let access = Access::Tokens(tokens.clone());
    let open = Open::over(Memory::default(), RespSettings { access, ..RespSettings::default() });
    let [withdrawn, kept] = [TOKEN, ANOTHER].map(|token| {
        let client = open.client();
        client.send_line(format!("AUTH {token}\r\nPING\r\n"));
        client.receive_reply("+OK\r\n+PONG\r\n");
        client
    });
    tokens.replace(ANOTHER).unwrap();
    for (client, printed) in [(withdrawn, NO_AUTH), (kept, "+PONG|")] {
        client.send_line("PING\r\n");
        assert_eq!(client.rest(), printed);
    }
}

#[test]
fn who_guesses_tokens_is_disconnected() {
    let open = Open::with_token();
    let client = open.client();
    client.send_line("AUTH guess\r\n".repeat(MAX_WRONG_TOKENS as usize));
    client.send_line(format!("AUTH {TOKEN}\r\n"));
    assert_eq!(client.until_closed(), WRONG.repeat(MAX_WRONG_TOKENS as usize));
}

#[test]
fn anonymous_clients_send_short_words_only() {
    let open = Open::with_token();
    let printed = open.printed("*2\r\n$4\r\nAUTH\r\n$4097\r\n");
    assert_eq!(printed, "-ERR Protocol error: unauthenticated bulk length|");
    let word = "x".repeat(4_096);
    assert_eq!(open.printed(format!("*2\r\n$4\r\nAUTH\r\n$4096\r\n{word}\r\n")), WRONG);
}
