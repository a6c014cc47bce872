//! Common clients: redis-cli, redis-py, ioredis, and a Rust client of redis-cell.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use redis_cell_rs::{Cmd, Policy, Verdict};
use serde_json::{Value, json};

use crate::resp::kit::{Open, TOKEN};

const USAGE: &str = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> \
                     <count per period> <period> [<quantity>]";
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn redis_cli_charges_and_probes() {
    let open = Open::new();
    let cli = |arguments: &[&str]| cli(&open, arguments, "");
    assert_eq!(cli(&["CL.THROTTLE", "cli", "2", "5", "60"]), "0\n3\n2\n-1\n12\n");
    assert_eq!(cli(&["-3", "CL.THROTTLE", "cli", "2", "5", "60", "3"]), "1\n3\n2\n12\n12\n");
    assert_eq!(cli(&["COMMAND", "COUNT"]), "23\n");
    assert!(cli(&["--json", "-3", "TG.CHARGE", "all", "1"]).starts_with("{\"admitted\":1,"));
    assert!(cli(&["INFO"]).contains("redis_version:7.4.0"));
    let typed = self::cli(&open, &[], "PING\nECHO 'a b'\nSELECT 0\nNONSENSE\n");
    assert_eq!(
        typed,
        "PONG\na b\nOK\nERR unknown command 'NONSENSE', with args beginning with: \n\n"
    );
}

#[test]
fn redis_cli_sends_many_commands_at_once() {
    let open = Open::new();
    let charges = "CL.THROTTLE pipe 999 1 3600\r\n".repeat(1_000);
    let printed = cli(&open, &["--pipe"], &charges);
    assert!(printed.ends_with("errors: 0, replies: 1000\n"), "{printed}");
    assert!(open.printed("CL.THROTTLE pipe 999 1 3600 0\r\n").starts_with("*5|:0|:1000|:0|"));
}

#[test]
fn redis_cli_shows_its_token() {
    let open = Open::with_token();
    let ask = ["CL.THROTTLE", "cli", "0", "1", "60"];
    assert_eq!(cli(&open, &ask, ""), "NOAUTH Authentication required.\n\n");
    let with = ["--no-auth-warning", "--user", "me", "--pass", TOKEN];
    assert_eq!(cli(&open, &[&with[..], &ask].concat(), ""), "0\n1\n0\n-1\n60\n");
    assert_eq!(cli(&open, &[&["-3"], &with[..], &ask].concat(), ""), "1\n1\n0\n60\n60\n");
}

/// Returns the expected output of both programs.
fn expected(wrong_password: &Value) -> Value {
    let limited = [vec![0; 50], vec![1; 50]].concat();
    json!({
        "charges": [[0, 2, 1, -1, 60], [0, 2, 0, -1, 120], [1, 2, 0, 60, 120]],
        "throttle": [0, 2, 0, 120, 60],
        "limited": limited,
        "error": USAGE,
        "wrong password": wrong_password,
    })
}

#[test]
fn redis_py_charges_in_both_versions() {
    for (open, password, wrong) in [
        (Open::new(), "", json!(true)),
        (Open::with_token(), TOKEN, json!(WRONG.strip_prefix("WRONGPASS ").unwrap())),
    ] {
        for protocol in ["2", "3"] {
            let mut printed = python(&[port(&open), password, protocol]);
            let own = json!([
                printed["ping"].take(),
                printed["map"].take(),
                printed["admitted"].take(),
                printed["outcome"].take(),
                printed["cells"].take()
            ]);
            assert_eq!(own, json!([true, protocol == "3", 1, "refunded", true]));
            assert_eq!(without_nulls(printed), expected(&wrong));
            open.clock.advance(tollgate::model::Millis::from_secs(3_600));
        }
    }
}

#[test]
fn ioredis_charges_and_pipelines() {
    for (open, password, wrong) in
        [(Open::new(), "", json!("PONG")), (Open::with_token(), TOKEN, json!(WRONG))]
    {
        let mut printed = node(&[port(&open), password]);
        assert_eq!(printed["ping"].take(), json!("PONG"));
        let falling: Vec<u32> = (0..100).rev().collect();
        assert_eq!(printed["remaining"].take(), json!(falling));
        assert_eq!(without_nulls(printed), expected(&wrong));
    }
}

#[test]
fn redis_cells_own_client_reads_its_verdicts() {
    let open = Open::with_token();
    let client = redis::Client::open(format!("redis://:{TOKEN}@{}/", open.address)).unwrap();
    let mut connection = client.get_connection().unwrap();
    let policy = Policy::from_tokens_per_period(5, Duration::from_secs(60)).max_burst(2);
    let key = "rust".into();
    let mut verdict = |tokens| -> Verdict {
        let command: redis::Cmd = Cmd::new(&key, &policy.apply_tokens(tokens)).into();
        command.query(&mut connection).unwrap()
    };
    let Verdict::Allowed(allowed) = verdict(1) else { panic!("the first is allowed") };
    assert_eq!((allowed.total, allowed.remaining, allowed.reset_after), (3, 2, 12));
    let Verdict::Blocked(blocked) = verdict(3) else { panic!("three of two are not") };
    assert_eq!((blocked.total, blocked.remaining), (3, 2));
    assert_eq!((blocked.retry_after, blocked.reset_after), (12, 12));
}

fn port(open: &Open) -> &str {
    open.address.rsplit(':').next().unwrap()
}

fn without_nulls(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

/// Returns the output of redis-cli for `input`.
fn cli(open: &Open, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("redis-cli");
    printed(command.args(["-p", port(open)]).args(arguments), input)
}

fn python(arguments: &[&str]) -> Value {
    let mut command = Command::new("python3");
    command.arg("-B").arg(here().join("python/charges.py")).args(arguments);
    let printed = printed(command.env("PYTHONPATH", packages("python", "redis")), "");
    serde_json::from_str(&printed).unwrap()
}

fn node(arguments: &[&str]) -> Value {
    // Node.js resolves modules relative to the program. For a program from standard input, that is
    // the working directory.
    let program = std::fs::read_to_string(here().join("node/charges.mjs")).unwrap();
    let mut command = Command::new("node");
    command.args(["--input-type=module", "-"]).args(arguments);
    let printed = printed(command.current_dir(packages("node", "node_modules")), &program);
    serde_json::from_str(&printed).unwrap()
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slow/resp/clients")
}

fn packages(language: &str, witness: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("target/redis-clients").join(language);
    assert!(
        folder.join(witness).exists(),
        "missing packages: {} has no {witness}; \
         crates/tollgate-server/tests/slow/resp/clients/packages.sh installs them, and so does ./test",
        folder.display()
    );
    folder
}

fn printed(command: &mut Command, input: &str) -> String {
    let program = command.get_program().to_owned();
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("missing program: {} ({error}); ./test installs it", program.display())
    });
    // A program that ended early has closed its input. Its output shows the reason.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{printed}{errors}", output.status);
    printed
}
