//! A reverse proxy that only forwards requests, with the same libraries and settings as Tollgate's
//! proxy. The difference to Tollgate's proxy is the processor time of limits and checks.
//!
//! `bare_proxy ADDRESS UPSTREAM`

use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};

/// The time after which an idle connection to the upstream is closed.
const IDLE: Duration = Duration::from_secs(60);

type Upstream = Client<HttpConnector, Incoming>;
type Answer = Response<Either<Incoming, Empty<Bytes>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(address), Some(upstream)) = (arguments.next(), arguments.next()) else {
        return Err("give the address to listen on, and that of the upstream".into());
    };
    let (address, upstream): (SocketAddr, SocketAddr) = (address.parse()?, upstream.parse()?);
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector);
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, client.clone(), upstream));
    }
}

async fn serve(stream: TcpStream, client: Upstream, upstream: SocketAddr) {
    let answer = service_fn(move |request| {
        let client = client.clone();
        async move { Ok::<_, Infallible>(forward(&client, upstream, request).await) }
    });
    let mut protocols = auto::Builder::new(TokioExecutor::new());
    protocols.http1().timer(TokioTimer::new()).header_read_timeout(None);
    // An error on a connection affects only the client of that connection.
    let _ = protocols.serve_connection_with_upgrades(TokioIo::new(stream), answer).await;
}

async fn forward(client: &Upstream, to: SocketAddr, mut request: Request<Incoming>) -> Answer {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let answer = match format!("http://{to}{path}").parse::<Uri>() {
        Ok(uri) => {
            *request.uri_mut() = uri;
            client.request(request).await.ok()
        }
        Err(_) => None,
    };
    answer.map_or_else(
        || {
            let mut answer = Response::new(Either::Right(Empty::new()));
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        },
        |answer| answer.map(Either::Left),
    )
}
