//! Hostile names and hostile pages have no effect.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::names::SCRIPTS;
use super::{Browser, charge, node, open};
use crate::support::client::{Client, fetch};
use crate::support::node::{Folder, Node};

#[test]
fn names_that_are_scripts_are_shown_and_do_not_run() {
    let (folder, node) = node("");
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "");
    page.shows("Busiest limits");
    for script in SCRIPTS {
        charge(&node, "few", ("user", script), 4);
        // In the URL, as in a link.
        let response = page.value(&format!(
            "new Promise((resolve) => {{
                addEventListener('hashchange', () => requestAnimationFrame(() =>
                    resolve(document.querySelector('h1').textContent)), {{ once: true }});
                location.hash = '#/limits/' + encodeURIComponent({});
            }})",
            json!(script)
        ));
        assert_eq!(response, json!(script));
    }
    // In a log: as a client, and as malformed lines.
    let mut log = String::new();
    for script in SCRIPTS {
        let entry =
            json!({ "time": "2026-10-10T10:00:00Z", "ip": script, "uri": "/", "status": 200 });
        writeln!(log, "{entry}\n{script}").unwrap();
    }
    folder.write("access.log", &log);
    page.go(&super::address(&node, "what-if"));
    page.choose("input[type=file]", &folder.path("access.log"));
    page.click("button", "Simulate");
    page.shows("Most affected subjects");
    page.shows("hit()");
    // As a subject, and as a policy with reported mistakes.
    page.go(&super::address(&node, "subject"));
    for script in SCRIPTS {
        page.write("user", script);
        page.click("button", "Show");
        page.until("/refused\\s+3\\s+3\\s+0/.test(document.querySelector('tbody tr')?.innerText)");
    }
    folder.write("policy.yaml", &format!("limits: {{ {}: 1 }}\n", json!(SCRIPTS[0])));
    page.go(&super::address(&node, "policy"));
    page.click("button", "Reload the file");
    page.shows("hit()");
    page.is_clean();
}

#[test]
fn subjects_that_are_scripts_are_shown_and_do_not_run() {
    // The store does not answer, and this node's share decides. Subjects are in clear text.
    let policy = super::POLICY.replace("per: user }", "per: user, reveal: true }");
    let store = "store: { redis: { shards: { east: { primary: \"redis://127.0.0.1:1\" } } } }\n";
    let folder = Folder::with(&format!("{policy}{store}"));
    let any = "127.0.0.1:0";
    let mut command =
        crate::support::node::command(&folder.policy(), &["--http", any, "--admin", any]);
    command.env("TOLLGATE_SECRET", "a-secret-of-the-tests");
    let node = Node::start(command);
    for script in SCRIPTS {
        charge(&node, "few", ("user", script), 5);
    }
    let mut browser = Browser::start();
    let page = open(&mut browser, &node, "top");
    let shown = "[...document.querySelectorAll('tbody th')].map((cell) => cell.textContent)";
    page.until("[...document.querySelectorAll('option')].some(({ value }) => value === 'few')");
    for by in ["refused", "charged"] {
        page.value(&format!(
            "{{ const [by, limit] = document.querySelectorAll('select');
               [by.value, limit.value] = ['{by}', 'few'];
               by.dispatchEvent(new Event('change')); }}"
        ));
        page.shows(&format!("Units {by} at this node"));
        page.until(&format!("{shown}.length >= 50"));
        let shown = page.value(shown);
        for script in SCRIPTS {
            let name = json!(format!("user={script}"));
            assert!(shown.as_array().unwrap().contains(&name), "{name} in {shown}");
        }
    }
    // The displayed name links to the subject itself.
    page.click("tbody a", &format!("user={}", SCRIPTS[8]));
    page.until("document.title.startsWith('Subject')");
    let values = "[...document.querySelectorAll('main input')].map((input) => input.value)";
    page.until(&format!("{values}.includes({})", json!(SCRIPTS[8])));
    page.is_clean();
}

#[test]
fn pages_elsewhere_neither_change_nor_read_anything() {
    let (_folder, node) = node("");
    let admin = node.listener("admin").to_owned();
    charge(&node, "few", ("user", "mallory"), 3);
    let forget = "/v1/standing?limit=few&subject%5Buser%5D=mallory";
    for (method, path) in [
        ("DELETE", forget),
        ("POST", "/v1/policy/reload"),
        ("PUT", "/v1/rollout"),
        ("PUT", "/v1/overrides"),
        ("DELETE", "/v1/overrides?group%5Buser%5D=mallory"),
        ("POST", "/v1/simulate"),
        ("POST", "/v1/check"),
        ("POST", "/v1/refund"),
    ] {
        for origin in ["http://evil.example", "http://localhost:1", "null"] {
            let mut client = Client::connect(&admin).unwrap();
            let head = format!("{method} {path} HTTP/1.1\r\nhost: {admin}\r\norigin: {origin}\r\n");
            client
                .send(head + "content-type: application/json\r\ncontent-length: 0\r\n\r\n")
                .unwrap();
            assert_eq!(client.answer().unwrap().status, 403, "{method} {path} {origin}");
        }
    }
    let mut browser = Browser::start();
    let page = browser.open(&format!("http://{}/", stranger()));
    let response = page.value(&format!(
        "Promise.all([
            ['DELETE', '{forget}', {{}}],
            ['POST', '/v1/policy/reload', {{}}],
            ['POST', '/v1/policy/reload', {{ mode: 'no-cors' }}],
            ['PUT', '/v1/rollout', {{ headers: {{ 'content-type': 'application/json' }} }}],
            ['GET', '/v1/status', {{}}],
            ['GET', '/v1/status', {{ mode: 'no-cors' }}],
            ['GET', '/dashboard/js/main.js', {{ mode: 'no-cors' }}],
        ].map(([method, path, more]) => fetch('http://{admin}' + path, {{ method, ...more }})
            .then((answer) => answer.text()).then((text) => text, () => '')))"
    ));
    assert_eq!(response, json!(["", "", "", "", "", "", ""]));
    // The dashboard cannot be put into a frame either.
    let framed = page.value(&format!(
        "new Promise((resolve) => {{
            const frame = document.createElement('iframe');
            frame.onload = () => {{
                try {{ resolve(frame.contentDocument?.body?.innerText ?? 'closed'); }}
                catch {{ resolve('closed'); }}
            }};
            frame.src = 'http://{admin}/dashboard/';
            document.body.append(frame);
        }})"
    ));
    assert_eq!(framed, json!("closed"));
    let observed = fetch(&admin, "GET", forget, None);
    let observed: Value = serde_json::from_str(&observed.body).unwrap();
    assert_eq!(observed["statuses"][0]["used"], json!(3));
}

#[test]
fn a_name_that_was_led_here_opens_nothing() {
    let (_folder, node) = node("serve: { dashboard: { hosts: admin.example } }\n");
    let rules = "--host-resolver-rules=MAP *.example 127.0.0.1";
    let mut browser = Browser::with(&[rules]);
    let port = node.listener("admin").rsplit_once(':').unwrap().1;
    let page = browser.open(&format!("http://evil.example:{port}/dashboard/"));
    page.shows("The host is not allowed");
    for (method, path) in [
        ("GET", "/v1/status"),
        ("GET", "/metrics"),
        ("GET", "/v1/policy"),
        ("DELETE", "/v1/standing?limit=few&subject%5Buser%5D=mallory"),
        ("POST", "/v1/policy/reload"),
        ("GET", "/nowhere"),
    ] {
        let status = page.value(&format!(
            "fetch('{path}', {{ method: '{method}' }}).then((answer) => answer.status)"
        ));
        assert_eq!(status, json!(421), "{method} {path}");
    }
    // Health queries accept any host name.
    let ready = page.value("fetch('/readyz').then((answer) => answer.status)");
    assert_eq!(ready, json!(200));
    for name in ["admin.example", "localhost", "node-1.localhost"] {
        page.go(&format!("http://{name}:{port}/dashboard/"));
        page.shows("Busiest limits");
    }
    page.is_clean();
}

#[test]
fn a_dashboard_that_was_put_away_is_not_there() {
    let (_folder, node) = node("serve: { dashboard: { enabled: false } }\n");
    for path in ["/dashboard", "/dashboard/", "/dashboard/js/main.js"] {
        assert_eq!(fetch(node.listener("admin"), "GET", path, None).status, 404, "{path}");
    }
    let (_folder, node) = super::node("");
    for path in ["/dashboard/", "/dashboard/js/main.js"] {
        assert_eq!(fetch(node.listener("admin"), "GET", path, None).status, 200, "{path}");
        assert_eq!(fetch(node.listener("http"), "GET", path, None).status, 404, "{path}");
    }
    assert_eq!(fetch(node.listener("admin"), "GET", "/dashboard", None).status, 308);
    for path in ["/dashboard/../v1/status", "/dashboard/index.html", "/dashboardx", "/dashboard//"]
    {
        assert_eq!(fetch(node.listener("admin"), "GET", path, None).status, 404, "{path}");
    }
    assert_eq!(fetch(node.listener("admin"), "POST", "/dashboard/", None).status, 405);
}

/// A foreign site: one empty page, for as long as the test runs.
fn stranger() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let page = "<!doctype html><title>elsewhere</title><body>";
                let length = page.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\
                     content-length: {length}\r\n\r\n{page}"
                );
            });
        }
    });
    address
}
