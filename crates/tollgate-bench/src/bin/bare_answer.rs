//! A server that sends the same response to every request, with the same libraries as Tollgate's
//! HTTP listener. Its processor time is that of HTTP itself, and therefore the lower bound for a
//! decision over HTTP.
//!
//! `bare_answer ADDRESS`

use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};

/// The shortest useful response.
const ANSWER: &[u8] = br#"{"admitted":true}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(address) = env::args().nth(1) else {
        return Err("give the address to listen on".into());
    };
    let listener = TcpListener::bind(address.parse::<SocketAddr>()?).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(stream: TcpStream) {
    let mut protocols = auto::Builder::new(TokioExecutor::new());
    protocols.http1().timer(TokioTimer::new()).header_read_timeout(None);
    // An error on a connection affects only the client of that connection.
    let _ = protocols.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    // If the body is incomplete, the connection ends with an error.
    let _ = request.into_body().collect().await;
    let mut answer = Response::new(Full::new(Bytes::from_static(ANSWER)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}
