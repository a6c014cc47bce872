//! The transport of calls: tokens, certificates, health, reflection, and shutdown.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_stream::StreamExt;
use tollgate::Limiter;
use tollgate::store::memory::Memory;
use tollgate_server::grpc::proto::RateLimitServiceClient;
use tollgate_server::{
    Access, ClientAuthorities, ConnectionLimits, GrpcListener, Listener, Port, Served, ServerTls,
    Tokens, serve,
};
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::grpc::world::{
    Opening, PATIENCE, World, counting, descriptor, policy, printed, request,
};

const POLICY: &str = "
limits: { many: { quota: 1000, window: 1h } }
descriptors: [{ domain: edge, tree: [{ key: a, limit: many }] }]
";

const TOKEN: &str = "0123456789abcdef";

async fn channel(address: &str) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

fn service(name: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: name.into() }
}

#[tokio::test]
async fn health_is_open_and_ends_with_the_process() {
    let access = Access::Tokens(Tokens::parse(TOKEN).unwrap());
    let opening = Opening { access, ..Opening::default() };
    let mut world = World::over(Memory::default(), POLICY, opening).await;
    let mut client = HealthClient::new(channel(&world.address).await);
    for name in ["", "envoy.service.ratelimit.v3.RateLimitService"] {
        assert_eq!(client.check(service(name)).await.unwrap().into_inner().status, 1);
    }
    let unknown = client.check(service("other")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    let mut watch = Request::new(service(""));
    let token = MetadataValue::try_from(format!("Bearer {TOKEN}")).unwrap();
    watch.metadata_mut().insert("authorization", token);
    let mut watched = client.watch(watch).await.unwrap().into_inner();
    assert_eq!(watched.next().await.unwrap().unwrap().status, 1);
    let (ended, last) = tokio::join!(world.end(), watched.next());
    assert_eq!(last.unwrap().unwrap().status, 2);
    assert_eq!(ended, Ok(()));
    assert!(watched.next().await.is_none());
}

/// The bug: `Watch` needed no token. Its stream lasts until the process drains and keeps the
/// connection busy, so a client without a token could occupy every connection slot.
#[tokio::test]
async fn a_client_without_a_token_could_watch_the_health_until_the_end() {
    let access = Access::Tokens(Tokens::parse(TOKEN).unwrap());
    let opening = Opening { access, ..Opening::default() };
    let world = World::over(Memory::default(), POLICY, opening).await;
    let mut client = HealthClient::new(channel(&world.address).await);
    let refused = client.watch(service("")).await.err().map(|status| status.code());
    assert_eq!(refused, Some(Code::Unauthenticated));
    let open = World::new(POLICY).await;
    let mut client = HealthClient::new(channel(&open.address).await);
    let mut watched = client.watch(service("")).await.unwrap().into_inner();
    assert_eq!(watched.next().await.unwrap().unwrap().status, 1);
}

#[tokio::test]
async fn a_token_opens_everything_else() {
    let access = Access::Tokens(Tokens::parse(TOKEN).unwrap());
    let opening = Opening { access, ..Opening::default() };
    let world = World::over(Memory::default(), POLICY, opening).await;
    for (shown, expected) in [
        (vec![], Some(Code::Unauthenticated)),
        (vec!["Bearer 0123456789abcdee"], Some(Code::Unauthenticated)),
        (vec!["Basic 0123456789abcdef"], Some(Code::Unauthenticated)),
        (vec!["Bearer 0123456789abcdef", "Bearer x"], Some(Code::Unauthenticated)),
        (vec!["Bearer 0123456789abcdef"], None),
        (vec!["bearer 0123456789abcdef"], None),
    ] {
        let mut requested = Request::new(request(vec![descriptor("a=1")]));
        for value in &shown {
            requested
                .metadata_mut()
                .append("authorization", MetadataValue::try_from(*value).unwrap());
        }
        let answer = world.client.clone().should_rate_limit(requested).await;
        assert_eq!(answer.err().map(|status| status.code()), expected, "{shown:?}");
    }
    let mut reflection = ServerReflectionClient::new(channel(&world.address).await);
    let refused = reflection.server_reflection_info(tokio_stream::iter([])).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
}

#[tokio::test]
async fn services_report_what_they_are_until_the_process_ends() {
    let mut world = World::new(POLICY).await;
    let mut client = ServerReflectionClient::new(channel(&world.address).await);
    let reflection_request = |message_request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message_request),
    };
    let symbol = "envoy.service.ratelimit.v3.RateLimitService".to_owned();
    let questions = [
        reflection_request(MessageRequest::ListServices(String::new())),
        reflection_request(MessageRequest::FileContainingSymbol(symbol)),
    ];
    // The client never ends its request stream.
    let questions = tokio_stream::iter(questions).chain(tokio_stream::pending());
    let mut answers = client.server_reflection_info(questions).await.unwrap().into_inner();
    let first = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = first else { panic!("{first:?}") };
    let mut names: Vec<String> = list.service.into_iter().map(|one| one.name).collect();
    names.sort();
    let expected = [
        "envoy.service.ratelimit.v3.RateLimitService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    ];
    assert_eq!(names, expected);
    let second = answers.next().await.unwrap().unwrap().message_response.unwrap();
    assert!(matches!(second, MessageResponse::FileDescriptorResponse(_)), "{second:?}");

    assert_eq!(world.end().await, Ok(()));
    assert!(answers.next().await.is_none());
}

#[tokio::test]
async fn what_was_asked_is_answered_before_the_end() {
    let mut world = World::new(POLICY).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let mut client = world.client.clone();
        asking.spawn(async move {
            let mut answered = 0_u32;
            while client.should_rate_limit(request(vec![descriptor("a=1")])).await.is_ok() {
                answered += 1;
            }
            answered
        });
    }
    while world.decide(vec![descriptor("a=1")]).await.statuses[0].limit_remaining > 500 {}
    assert_eq!(world.end().await, Ok(()));
    // Every call ended with its response, or because the listener was closed.
    let answered = timeout(PATIENCE, asking.join_all()).await.unwrap();
    assert!(answered.iter().all(|count| *count > 0), "{answered:?}");
}

#[tokio::test]
async fn a_connection_that_is_old_is_replaced_and_no_call_charged_in_vain() {
    let opening = Opening { age: Some(Duration::from_millis(20)), ..Opening::default() };
    let world = World::over(Memory::default(), POLICY, opening).await;
    let stream = TcpStream::connect(&world.address).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake::<_, _, axum::body::Body>(
        executor,
        TokioIo::new(stream),
    )
    .await
    .unwrap();
    // The connection ends by itself after `GOAWAY`.
    assert!(timeout(PATIENCE, connection).await.is_ok());
    drop(sender);
    let mut answered = 0;
    for _ in 0..500 {
        match world.send(request(vec![descriptor("a=1")])).await {
            Ok(_) => answered += 1,
            // This client does not repeat requests that it has not sent yet.
            Err(status) => assert_eq!(status.code(), Code::Cancelled, "{status:?}"),
        }
    }
    let mut look = world.send(request(vec![counting("a=1", 0)])).await;
    while look.is_err() {
        look = world.send(request(vec![counting("a=1", 0)])).await;
    }
    assert_eq!(look.unwrap().statuses[0].limit_remaining, 1000 - answered);
    assert!(answered > 0);
}

#[tokio::test]
async fn a_client_that_does_not_introduce_itself_is_left() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let limits = ConnectionLimits { request: Duration::from_millis(50), ..Default::default() };
    let world =
        World::over(Memory::default(), POLICY, Opening { limits, ..Opening::default() }).await;
    for half in ["P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTT"] {
        let mut stream = TcpStream::connect(&world.address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        // The connection is closed, either cleanly or by a reset.
        let read = timeout(PATIENCE, stream.read_to_end(&mut received)).await;
        assert!(read.is_ok(), "{half:?}");
    }
    assert!(printed(&world.decide(vec![descriptor("a=1")]).await).starts_with("OK: "));
}

#[tokio::test]
async fn a_unix_domain_socket_will_do() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("grpc.sock");
    let listen = format!("unix:{}", path.display()).parse().unwrap();
    let limiter = Arc::new(Limiter::new(policy(POLICY), Memory::default()));
    let limits = ConnectionLimits::default();
    let endpoint = GrpcListener::new(limiter, Access::Open, limits);
    let listener = Listener::open(&listen, Port::Exclusive).unwrap();
    let served = Served::new("grpc", listener, limits, endpoint);
    let serving = tokio::spawn(serve(vec![served], PATIENCE, std::future::pending()));
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    let channel = endpoint.connect_with_connector(connector).await.unwrap();
    let requested = request(vec![descriptor("a=1")]);
    let answer = RateLimitServiceClient::new(channel).should_rate_limit(requested).await.unwrap();
    assert!(printed(&answer.into_inner()).starts_with("OK: OK many "));
    serving.abort();
}

/// Creates `ca.pem`, and certificates with keys that it signed for a server and a client.
fn certificates() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    for (name, subject) in [("server", "localhost"), ("client", "envoy")] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([subject.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &authority).unwrap();
        std::fs::write(folder.path().join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    folder
}

async fn over_tls(address: String, folder: &TempDir, with_certificate: bool) -> Option<Channel> {
    let file = |name: &str| folder.path().join(name);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match with_certificate {
        false => builder.with_no_client_auth(),
        true => {
            let chain = vec![CertificateDer::from_pem_file(file("client.pem")).unwrap()];
            let key = PrivateKeyDer::from_pem_file(file("client.key")).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let connector = tower::service_fn(move |_| {
        let (address, connector) = (address.clone(), connector.clone());
        async move {
            let stream = TcpStream::connect(address).await?;
            let name = "localhost".try_into().unwrap();
            connector.connect(name, stream).await.map(TokioIo::new)
        }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await.ok()
}

#[tokio::test]
async fn over_tls_only_clients_with_certificates_are_served() {
    let folder = certificates();
    let file = |name: &str| folder.path().join(name);
    let (certificate, key) = (file("server.pem"), file("server.key"));
    let clients = ClientAuthorities::Required(file("ca.pem"));
    let tls = ServerTls::read(&certificate, &key, clients, &["h2"]).unwrap();
    let opening = Opening { tls: Some(tls), ..Opening::default() };
    let world = World::over(Memory::default(), POLICY, opening).await;
    for with_certificate in [true, false] {
        let requested = request(vec![descriptor("a=1")]);
        let is_answered = match over_tls(world.address.clone(), &folder, with_certificate).await {
            None => false,
            Some(channel) => {
                RateLimitServiceClient::new(channel).should_rate_limit(requested).await.is_ok()
            }
        };
        assert_eq!(is_answered, with_certificate);
    }
    let plain = world.send(request(vec![descriptor("a=1")])).await;
    assert!(plain.is_err(), "{plain:?}");
}
