//! Several upstreams: balancing, health, retries, routes, TLS.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tollgate_http::{Accepted, Stream};
use tollgate_proxy::{
    ClientAuthorities, ClientTls, ClientTlsFiles, Error, ServerTls, Settings, UpstreamStatus,
    Upstreams,
};

use crate::{
    certificates::Authority,
    setup::{Client, Proxy, exchange, statuses, within},
    upstream::{Recorder, canned, read_head, serve, serve_raw},
};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const POST: &str = "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
const KEPT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn balanced(urls: &[String]) -> Settings {
    let upstreams = urls.iter().map(|url| url.parse().expect("an upstream")).collect();
    let mut settings = Settings::new(urls[0].parse().expect("an upstream"));
    settings.upstreams = Upstreams::new(upstreams, vec![]).expect("upstreams");
    settings
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Returns an address where nothing listens.
pub(crate) async fn unreachable() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("an address")
}

fn status_of(settings: &Settings, address: SocketAddr) -> UpstreamStatus {
    let addresses = settings.upstream_metrics.addresses();
    addresses.into_iter().find(|one| one.address == address).expect("the address")
}

#[tokio::test]
async fn requests_are_shared_by_all_upstreams() {
    let recorders = [Recorder::start().await, Recorder::start().await, Recorder::start().await];
    let settings = balanced(&recorders.each_ref().map(|one| url(one.address)));
    let proxy = Proxy::with(settings.clone()).await;
    for _ in 0..60 {
        assert_eq!(statuses(&exchange(proxy.address, GET).await), [200]);
    }
    let shares = recorders.map(|one| one.take().len());
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
    assert_eq!(shares.iter().sum::<usize>(), 60);
    let addresses = settings.upstream_metrics.addresses();
    assert_eq!(addresses.iter().map(|one| one.requests).sum::<u64>(), 60);
}

#[tokio::test]
async fn an_address_that_refuses_connections_is_set_aside_and_no_request_fails() {
    let (recorder, dead) = (Recorder::start().await, unreachable().await);
    let settings = balanced(&[url(dead), url(recorder.address)]);
    let proxy = Proxy::with(settings.clone()).await;
    for request in [GET, POST].into_iter().cycle().take(60) {
        assert_eq!(statuses(&exchange(proxy.address, request).await), [200]);
    }
    assert_eq!(recorder.take().len(), 60);
    let failures = status_of(&settings, dead).failures;
    assert!(failures >= 3, "{failures}");
    assert_eq!(settings.upstream_metrics.retries().connect, failures);
    assert_eq!(status_of(&settings, recorder.address).failures, 0);
}

#[tokio::test]
async fn never_all_addresses_are_set_aside() {
    let dead = [unreachable().await, unreachable().await, unreachable().await];
    let settings = balanced(&dead.map(url));
    let proxy = Proxy::with(settings.clone()).await;
    for _ in 0..20 {
        assert_eq!(statuses(&exchange(proxy.address, GET).await), [502]);
        let addresses = settings.upstream_metrics.addresses();
        assert!(addresses.iter().any(|one| !one.is_set_aside), "{addresses:?}");
    }
}

#[tokio::test]
async fn an_address_that_answers_503_is_set_aside_and_comes_back() {
    let recorder = Recorder::start().await;
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let moody = serve(move |_| {
        let status = match broken.load(Ordering::SeqCst) {
            true => StatusCode::SERVICE_UNAVAILABLE,
            false => StatusCode::OK,
        };
        async move {
            let mut response = Response::new(Full::<bytes::Bytes>::default());
            *response.status_mut() = status;
            response
        }
    })
    .await;
    let settings = balanced(&[url(moody), url(recorder.address)]);
    let proxy = Proxy::with(settings.clone()).await;
    within(async {
        loop {
            let status = statuses(&exchange(proxy.address, GET).await);
            assert!(status == [200] || status == [503], "{status:?}");
            if status_of(&settings, moody).is_set_aside {
                break;
            }
        }
        is_broken.store(false, Ordering::SeqCst);
        let before = status_of(&settings, moody).requests;
        while status_of(&settings, moody).requests < before + 3 {
            assert_eq!(statuses(&exchange(proxy.address, GET).await), [200]);
        }
    })
    .await;
    assert!(!status_of(&settings, moody).is_set_aside);
}

/// The bug: a response that the proxy replaced by a 502, because it contradicted itself, counted as
/// a success of its address. The address was never set aside.
#[tokio::test]
async fn an_address_with_contradictory_responses_counted_as_healthy() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ] {
        let broken = canned(answer).await;
        let recorder = Recorder::start().await;
        let settings = balanced(&[url(broken), url(recorder.address)]);
        let proxy = Proxy::with(settings.clone()).await;
        within(async {
            loop {
                let status = statuses(&exchange(proxy.address, GET).await);
                assert!(status == [200] || status == [502], "{status:?}");
                if status_of(&settings, broken).is_set_aside {
                    break;
                }
            }
        })
        .await;
        assert!(status_of(&settings, broken).failures >= 3);
        assert_eq!(status_of(&settings, recorder.address).failures, 0);
    }
}

/// Starts an upstream that closes its first connection at the second request, after it has sent
/// `last`.
async fn closing(last: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let address = serve_raw(move |mut stream| {
        let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            for number in 0.. {
                if read_head(&mut stream).await.is_empty() {
                    return;
                }
                let answer = if is_first && number > 0 { last } else { KEPT };
                stream.write_all(answer.as_bytes()).await.expect("the proxy reads");
                if is_first && number > 0 {
                    return;
                }
            }
        }
    })
    .await;
    (address, connections)
}

#[tokio::test]
async fn only_an_idempotent_request_without_a_body_is_sent_again_and_only_before_the_response() {
    let with_body = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    for (request, last, status, retries) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", 200, 1),
        ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "", 200, 1),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "", 502, 0),
        (with_body, "", 502, 0),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 2", 502, 0),
    ] {
        let (upstream, connections) = closing(last).await;
        let settings = balanced(&[url(upstream)]);
        let proxy = Proxy::with(settings.clone()).await;
        let mut client = Client::connect(proxy.address).await;
        client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(statuses(&client.read_response().await), [200]);
        client.send(request).await;
        assert_eq!(statuses(&client.read_response().await), [status], "{request:?} {last:?}");
        assert_eq!(settings.upstream_metrics.retries().closed, retries, "{request:?}");
        assert_eq!(connections.load(Ordering::SeqCst), 1 + retries as usize, "{request:?}");
    }
}

#[tokio::test]
async fn a_route_serves_its_prefix_and_its_host() {
    let [all, api, shop] = [(); 3].map(|()| Recorder::start());
    let (all, api, shop) = (all.await, api.await, shop.await);
    let routes =
        [format!("/api={}", url(api.address)), format!("shop.example/={}", url(shop.address))];
    let routes = routes.map(|route| route.parse().expect("a route")).to_vec();
    let mut settings = balanced(&[url(all.address)]);
    let default = vec![url(all.address).parse().expect("an upstream")];
    settings.upstreams = Upstreams::new(default, routes).expect("upstreams");
    let proxy = Proxy::with(settings).await;
    for (host, path, expected) in [
        ("a", "/api/users?x=1", &api),
        ("a", "/api", &api),
        ("a", "/apis", &all),
        ("a", "/", &all),
        ("Shop.example:80", "/api", &shop),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(statuses(&exchange(proxy.address, head).await), [200]);
        assert_eq!(expected.take_one().line, format!("GET {path}"));
    }
}

#[tokio::test]
async fn all_addresses_of_a_host_name_are_tried_and_an_unknown_name_is_a_502() {
    let recorder = Recorder::start().await;
    // `localhost` may have an IPv6 address too, where nothing listens.
    let settings = balanced(&[format!("http://localhost:{}", recorder.address.port())]);
    let proxy = Proxy::with(settings.clone()).await;
    for _ in 0..10 {
        assert_eq!(statuses(&exchange(proxy.address, POST).await), [200]);
    }
    assert_eq!(status_of(&settings, recorder.address).requests, 10);
    let proxy = Proxy::with(balanced(&["http://nowhere.invalid".to_owned()])).await;
    let status = statuses(&exchange(proxy.address, GET).await);
    // 504 where the resolver takes longer than the time to connect.
    assert!(status == [502] || status == [504], "{status:?}");
}

/// Starts an HTTP/1.1 server over TLS that answers with the common name of its client.
async fn serve_tls(tls: ServerTls) -> SocketAddr {
    serve_raw(move |stream| {
        let accepted = Accepted { stream: Stream::Tcp(stream), peer: None, tls: Some(tls.clone()) };
        async move {
            let Ok(stream) = accepted.handshake().await else { return };
            let client = stream.peer_certificate().and_then(|names| names.common_name);
            let client = client.unwrap_or_else(|| "nobody".to_owned());
            let service = service_fn(move |_| {
                let response = Response::new(Full::<bytes::Bytes>::from(client.clone()));
                async { Ok::<_, std::convert::Infallible>(response) }
            });
            // The test checks the end of the connection from the other side.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await
}

#[tokio::test]
async fn an_https_upstream_is_verified_by_its_authority_and_its_name() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = serve_tls(authority.server(ClientAuthorities::None, &["http/1.1"])).await;
    let trusting = |authority: &Authority| {
        let authorities = Some(authority.file("ca.pem"));
        ClientTls::read(ClientTlsFiles { authorities, client: None }).expect("an authority")
    };
    for (host, tls, status) in [
        ("localhost", trusting(&authority), 200),
        ("127.0.0.1", trusting(&authority), 502),
        ("localhost", trusting(&other), 502),
    ] {
        let mut settings = balanced(&[format!("https://{host}:{}", server.port())]);
        settings.upstream_tls = Some(tls);
        let proxy = Proxy::with(settings).await;
        let answer = exchange(proxy.address, GET).await;
        assert_eq!(statuses(&answer), [status], "{host}");
        assert!(status == 200 || answer.contains("could not be reached") || answer.contains("TLS"));
    }
    let settings = balanced(&["https://localhost".to_owned()]);
    assert_eq!(settings_error(settings).await, Error::UpstreamTls);
}

async fn settings_error(settings: Settings) -> Error {
    let proxy = Proxy::with(settings).await;
    within(proxy.ended()).await.expect("no panic").expect_err("wrong settings")
}

#[tokio::test]
async fn the_proxy_presents_its_certificate_to_an_upstream_that_requires_one() {
    let authority = Authority::new();
    let ca = authority.file("ca.pem");
    let tls = authority.server(ClientAuthorities::Required(ca.clone()), &["http/1.1"]);
    let server = serve_tls(tls).await;
    let client = authority.issue("gateway", "gateway");
    for (client, status) in [(Some(client), 200), (None, 502)] {
        let mut settings = balanced(&[format!("https://localhost:{}", server.port())]);
        let files = ClientTlsFiles { authorities: Some(ca.clone()), client };
        settings.upstream_tls = Some(ClientTls::read(files).expect("certificates"));
        let proxy = Proxy::with(settings).await;
        let answer = exchange(proxy.address, GET).await;
        assert_eq!(statuses(&answer), [status]);
        assert_eq!(answer.ends_with("gateway"), status == 200);
    }
}
