//! The access log of the proxy.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::node::Folder;
use crate::support::world::{Proxy, service, tollgate};

const POLICY: &str = "
trusted_proxies: 127.0.0.1
subjects: { address: { client_address: {} }, key: { header: authorization } }
limits: { core: { quota: 3, window: 1h, per: address } }
rules: [ { name: all, limits: core } ]
";

const PATIENCE: Duration = Duration::from_secs(60);

/// A proxy with an access log in a folder of its own.
struct Logged {
    folder: Folder,
    proxy: Proxy,
}

impl Logged {
    fn start(policy: &str, flags: &[&str]) -> Self {
        let folder = Folder::with(policy);
        let log = folder.path("access.log").display().to_string();
        let flags = [&["--access-log", &log], flags].concat();
        let upstream = format!("http://{}", service());
        let proxy = Proxy::start_with("127.0.0.1:0", &upstream, &folder.policy(), &flags);
        Self { folder, proxy }
    }

    fn log(&self) -> PathBuf {
        self.folder.path("access.log")
    }

    /// Waits until the log has `count` lines, and returns them.
    fn lines(&self, count: usize) -> Vec<String> {
        let began = Instant::now();
        loop {
            let text = std::fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            if lines.len() >= count {
                assert_eq!(lines.len(), count, "{text}");
                return lines;
            }
            assert!(began.elapsed() < PATIENCE, "{text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends five requests of one client, behind a proxy that is trusted.
    fn five_requests(&self) {
        for number in 0..5 {
            let fields =
                ["x-forwarded-for: 192.0.2.7", "authorization: Bearer secret", "user-agent: \"x\""];
            self.proxy.get(&format!("/a?number={number}"), &fields);
        }
    }
}

/// `tollgate simulate` makes the same decisions on the log of the proxy as the proxy made.
#[test]
fn each_request_has_a_line_and_simulate_reads_them() {
    for format in ["json", "combined"] {
        let logged = Logged::start(POLICY, &["--access-log-format", format]);
        logged.five_requests();
        let lines = logged.lines(5);
        assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
        if format == "json" {
            let line = |index: usize| -> Value { serde_json::from_str(&lines[index]).unwrap() };
            assert_eq!(line(0)["request_uri"], "/a?number=0");
            assert_eq!((&line(0)["status"], &line(0)["body_bytes_sent"]), (&200.into(), &5.into()));
            assert_eq!(
                (&line(0)["refused_by"], &line(4)["refused_by"]),
                (&Value::Null, &"core".into())
            );
            assert_eq!(
                (&line(4)["remote_addr"], &line(4)["status"]),
                (&"192.0.2.7".into(), &429.into())
            );
        }
        let (policy, log) = (logged.folder.policy(), logged.log());
        let arguments =
            ["simulate", "--json", "--policy", policy.to_str().unwrap(), log.to_str().unwrap()];
        let simulated = tollgate(&arguments);
        let report: Value = serde_json::from_slice(&simulated.stdout).unwrap();
        assert_eq!((&report["admitted"], &report["refused"]), (&3.into(), &2.into()), "{report:#}");
        assert_eq!(report["malformed"], 0, "{format}");
        assert_eq!(report["subjects"][0]["client"], "192.0.2.7");
    }
}

#[test]
fn refusals_alone_can_be_logged_and_secrets_in_a_query_are_not() {
    for source in ["query: api_key", "expression: \"request.params.api_key + '!'\""] {
        let policy = POLICY.replace("header: authorization", source);
        let logged = Logged::start(&policy, &["--access-log-refusals"]);
        for _ in 0..4 {
            logged.proxy.get("/a?api_key=hunter2", &[]);
        }
        let [line] = logged.lines(1).try_into().unwrap();
        assert!(line.contains(r#""request_uri":"/a?-""#) && !line.contains("hunter2"), "{line}");
        assert!(line.contains(r#""refused_by":"core""#), "{line}");
    }
}

#[test]
fn the_file_is_opened_again_on_sighup() {
    let logged = Logged::start(POLICY, &[]);
    logged.five_requests();
    logged.lines(5);
    let old = logged.folder.path("access.log.1");
    std::fs::rename(logged.log(), &old).unwrap();
    logged.proxy.hang_up();
    let began = Instant::now();
    while !logged.log().exists() {
        assert!(began.elapsed() < PATIENCE, "no new file");
        std::thread::sleep(Duration::from_millis(5));
    }
    logged.five_requests();
    logged.lines(5);
    assert_eq!(std::fs::read_to_string(old).unwrap().lines().count(), 5);
}

/// A log that cannot be written stops no request, and the end of the proxy waits for no disk.
#[test]
fn a_full_disk_costs_lines_and_no_requests() {
    let folder = Folder::with(POLICY);
    let upstream = format!("http://{}", service());
    let flags = ["--access-log", "/dev/full"];
    let proxy = Proxy::start_with("127.0.0.1:0", &upstream, &folder.policy(), &flags);
    assert_eq!(proxy.get("/", &[]).status, 200);
    proxy.wait_for_log("the access log cannot be written");
    assert_eq!(proxy.get("/", &[]).status, 200);
    assert_eq!(proxy.terminate().1, Some(0));

    let missing = tollgate(&[
        "proxy",
        "--upstream",
        &upstream,
        "--listen",
        "127.0.0.1:0",
        "--policy",
        folder.policy().to_str().unwrap(),
        "--access-log",
        "/nowhere/access.log",
    ]);
    let error = String::from_utf8(missing.stderr).unwrap();
    assert!(
        !missing.status.success() && error.contains("cannot write to /nowhere/access.log"),
        "{error}"
    );
}

#[test]
fn a_malformed_request_has_a_line_without_a_request() {
    let request = "GET / HTTP/1.1\r\nhost: test\r\ncontent-length: 1, 2\r\n\r\n";
    for (format, expected) in
        [("combined", "\"-\" 400 0 \"-\" \"-\""), ("json", "\"request_uri\":null")]
    {
        let logged =
            Logged::start(POLICY, &["--access-log-format", format, "--access-log-refusals"]);
        let answer = String::from_utf8(logged.proxy.send(request.as_bytes())).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        let large = format!("GET / HTTP/1.1\r\nhost: test\r\na: {}\r\n\r\n", "a".repeat(70_000));
        let answer = String::from_utf8(logged.proxy.send(large.as_bytes())).unwrap();
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
        let lines = logged.lines(2);
        assert!(lines[0].contains(expected) && lines[0].contains("127.0.0.1"), "{lines:?}");
        assert!(lines[1].contains("431"), "{lines:?}");
    }
}
