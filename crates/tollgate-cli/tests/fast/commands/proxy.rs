//! `tollgate proxy` with the policies that are shipped.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::support::listeners::recipe;
use crate::support::world::{Answer, PATIENCE, Proxy, policy, service, tollgate};

#[test]
fn an_anonymous_client_has_sixty_requests_an_hour_and_one_reset() {
    let proxy = Proxy::start(&policy("github.yaml"));
    let first = proxy.get("/", &[]);
    let reset = first.field("x-ratelimit-reset").to_owned();
    for used in 1..=60 {
        let answer = if used == 1 { proxy.get("/rate_limit", &[]) } else { proxy.get("/", &[]) };
        if used == 1 {
            let core = format!(
                r#""core":{{"limit":60,"used":1,"remaining":59,"reset":{reset},"resource":"core"}}"#
            );
            assert!(answer.body.contains(&core), "{answer:?}");
            continue;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body, "hello");
        assert_eq!(answer.field("x-ratelimit-used"), used.to_string());
        assert_eq!(answer.field("x-ratelimit-remaining"), (60 - used).to_string());
        assert_eq!(answer.field("x-ratelimit-reset"), reset);
        assert_eq!(answer.field("x-ratelimit-resource"), "core");
    }
    let refused = proxy.get("/", &[]);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.field("x-ratelimit-reset"), reset);
    assert_eq!(refused.field("x-ratelimit-remaining"), "0");
    let wait: u64 = refused.field("retry-after").parse().unwrap();
    assert!((1..=3_600).contains(&wait), "{wait}");
    assert_eq!(refused.field("content-type"), "application/json; charset=utf-8");
    let problem: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["anonymous"]));
    assert_eq!(problem["status"], 429);
}

#[test]
fn what_has_not_changed_costs_nothing() {
    let proxy = Proxy::start(&policy("github.yaml"));
    for _ in 0..100 {
        let answer = proxy.get("/", &["if-none-match: \"tag\""]);
        assert_eq!(answer.status, 304);
        assert_eq!(answer.field("x-ratelimit-remaining"), "60");
    }
    assert_eq!(proxy.get("/", &[]).field("x-ratelimit-remaining"), "59");
}

#[test]
fn a_token_has_limits_of_its_own_and_addresses_cannot_be_forged() {
    let proxy = Proxy::start(&policy("github.yaml"));
    let token = proxy.get("/", &["authorization: Bearer one"]);
    assert_eq!(token.field("x-ratelimit-limit"), "5000");
    let search = proxy.get("/search/code?q=x", &["authorization: Bearer one"]);
    assert_eq!(search.field("x-ratelimit-limit"), "30");
    assert_eq!(search.field("x-ratelimit-resource"), "search");
    for (used, address) in [("1", "198.51.100.1"), ("2", "198.51.100.2")] {
        let forged = proxy.get("/", &[&format!("x-forwarded-for: {address}")]);
        assert_eq!(forged.field("x-ratelimit-used"), used);
    }
}

#[test]
fn two_hundred_parallel_requests_at_a_limit_of_a_hundred_admit_a_hundred() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    let text = "subjects: { address: { client_address: {} } }\n\
                limits: { hundred: { quota: 100, window: 1h, per: address } }\n\
                rules: [ { name: all, limits: hundred } ]\n";
    std::fs::write(&path, text).unwrap();
    let proxy = Arc::new(Proxy::start(&path));
    let clients = (0..200).map(|_| {
        let proxy = Arc::clone(&proxy);
        thread::spawn(move || proxy.get("/", &[]).status)
    });
    let clients: Vec<_> = clients.collect();
    let statuses: Vec<u16> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 100);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 100);
}

#[test]
fn a_thousand_malformed_requests_leave_it_serving() {
    let proxy = Proxy::start(&policy("github.yaml"));
    let pieces: [&[u8]; 10] = [
        b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ];
    for index in 0..1_000 {
        let status = Answer::parse(&proxy.send(pieces[index % pieces.len()])).status;
        // A request with a valid head is charged before its body turns out to be invalid, so one
        // kind of these requests reaches the limit.
        let is_charged = index % pieces.len() == 3;
        assert!(status == 400 || is_charged && status == 429, "{index}: {status}");
    }
    let answer = proxy.get("/", &["authorization: Bearer somebody-else"]);
    assert_eq!((answer.status, answer.field("x-ratelimit-used")), (200, "1"));
}

#[test]
fn an_upstream_that_is_not_there_is_a_clear_502() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Proxy::start_at(&format!("http://{nobody}"), &policy("github.yaml"));
    let answer = proxy.get("/", &[]);
    assert_eq!(answer.status, 502);
    assert_eq!(answer.field("content-type"), "application/problem+json");
    assert!(!answer.body.contains(&nobody.port().to_string()), "{}", answer.body);
}

/// A service that closes every connection after its client has sent a full stop, and never
/// responds.
fn closing_service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            thread::spawn(move || {
                let (mut client, mut read) = (client.unwrap(), [0; 4_096]);
                while let Ok(bytes @ 1..) = client.read(&mut read) {
                    if read[..bytes].ends_with(b".") {
                        break;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn what_fails_by_the_clients_own_stall_is_not_refunded() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    let text = "subjects: { address: { client_address: {} } }\n\
                limits: { three: { quota: 3, window: 1h, per: address } }\n\
                rules: [ { name: all, limits: three } ]\n\
                answers: { refund: { status: [400, 408, 502], upstream_failure: true } }\n";
    std::fs::write(&path, text).unwrap();
    let start = || Proxy::start_at(&format!("http://{}", closing_service()), &path);
    let post = |proxy: &Proxy, body: &str| {
        let head =
            "POST / HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: 10\r\n\r\n";
        Answer::parse(&proxy.send(format!("{head}{body}").as_bytes())).status
    };
    // The client sent a part, and waits until the upstream closes.
    let proxy = start();
    let statuses = [(); 4].map(|()| post(&proxy, "1234."));
    assert_eq!(statuses, [502, 502, 502, 429]);
    // The client sent everything: only the upstream has failed. The refund comes after the
    // response.
    let (proxy, began) = (start(), Instant::now());
    let mut failed = 0;
    while failed < 10 {
        failed += u32::from(post(&proxy, "123456789.") == 502);
        assert!(began.elapsed() < PATIENCE, "{failed} requests were refunded");
    }
}

#[test]
fn a_shared_port_is_served_without_a_gap() {
    let policy = policy("github.yaml");
    let upstream = format!("http://{}", service());
    let start = |listen: &str| Proxy::start_with(listen, &upstream, &policy, &["--reuse-port"]);
    let first = start("127.0.0.1:0");
    let address = first.address;
    let (is_over, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let goes_on = || {
        let until = answered.load(Ordering::Relaxed) + 20;
        while answered.load(Ordering::Relaxed) < until {
            thread::yield_now();
        }
    };
    let refused = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut refused = 0;
            while !is_over.load(Ordering::Relaxed) {
                let request = b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
                let mut answer = Vec::new();
                let requested = TcpStream::connect(address).and_then(|mut client| {
                    client.write_all(request)?;
                    client.read_to_end(&mut answer)
                });
                match requested {
                    Ok(1..) => _ = answered.fetch_add(1, Ordering::Relaxed),
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => refused += 1,
                    // The connection was in the socket's queue at the moment when the socket was
                    // closed.
                    Ok(0) | Err(_) => {}
                }
            }
            refused
        });
        let mut serving = first;
        for _ in 0..3 {
            goes_on();
            let next = start(&address.to_string());
            let (_, code) = std::mem::replace(&mut serving, next).terminate();
            assert_eq!(code, Some(0));
        }
        goes_on();
        is_over.store(true, Ordering::Relaxed);
        client.join().unwrap()
    });
    assert_eq!(refused, 0);
}

#[test]
fn without_a_shared_port_a_second_proxy_is_told_that_the_port_is_taken() {
    let first = Proxy::start(&policy("github.yaml"));
    let (github, address) =
        (policy("github.yaml").display().to_string(), first.address.to_string());
    let upstream = ["proxy", "--upstream", "http://127.0.0.1:9", "--policy", &github];
    let output = tollgate(&[&upstream[..], &["--listen", &address, "--reuse-port"]].concat());
    assert!(!output.status.success());
    let response = String::from_utf8(output.stderr).unwrap();
    assert!(response.contains(&format!("cannot listen on {address}")), "{response}");
}

#[test]
fn sigterm_ends_it_with_a_word_and_success() {
    let proxy = Proxy::start(&policy("github.yaml"));
    assert_eq!(proxy.get("/", &[]).status, 200);
    let (last_words, code) = proxy.terminate();
    assert!(last_words.contains("every request in flight has ended"), "{last_words}");
    assert_eq!(code, Some(0));
}

#[test]
fn what_cannot_work_is_explained() {
    let github = policy("github.yaml").display().to_string();
    let upstream = ["--upstream", "http://127.0.0.1:9"];
    for (arguments, words) in [
        (vec!["--upstream", "ftp://a", "--policy", &github], "ftp://a"),
        (
            vec![upstream[0], upstream[1], "--route", "api=http://a", "--policy", &github],
            "/prefix=http://host:port",
        ),
        (vec![upstream[0], upstream[1], "--policy", "/no/such.yaml"], "/no/such.yaml"),
        (vec![upstream[0], upstream[1], "--policy", &github, "--listen", "here"], "here"),
    ] {
        let output = tollgate(&[&["proxy"], &arguments[..]].concat());
        assert!(!output.status.success());
        let response = String::from_utf8(output.stderr).unwrap();
        assert!(response.contains(words), "{response}");
    }
}

/// Starts a service that accepts one password. Returns its address and the number of wrong
/// passwords that it has received.
fn sign_in_service() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, failures) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&failures);
    thread::spawn(move || {
        for client in listener.incoming() {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let (mut client, mut read) = (client.unwrap(), Vec::new());
                let mut bytes = [0; 4_096];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    read.extend(&bytes[..count]);
                    if !read.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let head = String::from_utf8(std::mem::take(&mut read)).unwrap();
                    let is_right = head.to_lowercase().contains("x-password: right");
                    counter.fetch_add(u64::from(!is_right), Ordering::SeqCst);
                    let status = if is_right { "200 OK" } else { "401 Unauthorized" };
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                    client.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    (address, failures)
}

#[test]
fn fifty_wrong_passwords_at_once_reach_the_service_five_times() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    std::fs::write(&path, recipe("Sign-in by failures")).unwrap();
    let (service, failures) = sign_in_service();
    let proxy = Arc::new(Proxy::start_at(&format!("http://{service}"), &path));
    let sign_in = |proxy: &Proxy, account: &str, password: &str| {
        let fields = [format!("x-account: {account}"), format!("x-password: {password}")];
        proxy.get("/login", &[&fields[0], &fields[1]]).status
    };
    // Successful requests are not counted, however many they are.
    for _ in 0..8 {
        assert_eq!(sign_in(&proxy, "bob", "right"), 200);
    }
    let clients = (0..50).map(|_| {
        let proxy = Arc::clone(&proxy);
        thread::spawn(move || sign_in(&proxy, "amy", "wrong"))
    });
    let clients: Vec<_> = clients.collect();
    let statuses: Vec<u16> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 5);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 45);
    assert_eq!(failures.load(Ordering::SeqCst), 5);
    assert_eq!(sign_in(&proxy, "amy", "right"), 429);
    assert_eq!(sign_in(&proxy, "bob", "right"), 200);
}
