//! A client of the gRPC door that shows what is on the wire.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

pub(crate) const ASK: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
pub(crate) const HEALTH: &str = "/grpc.health.v1.Health/Check";
pub(crate) const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// The `grpc-status` of a call of `path`, and the message that came before it.
pub(crate) fn call(address: &str, path: &str, token: Option<&str>) -> (String, Vec<u8>) {
    let message: &[u8] = if path == ASK { &ASKED } else { &[0; 5] };
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (mut client, connection) =
            http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::post(format!("http://{address}{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(message))).unwrap();
        let answer = client.send_request(request).await.unwrap();
        let early = answer.headers().get("grpc-status").cloned();
        let body = answer.into_body().collect().await.unwrap();
        let late = body.trailers().and_then(|fields| fields.get("grpc-status").cloned());
        let status = early.or(late).unwrap().to_str().unwrap().to_owned();
        (status, body.to_bytes().to_vec())
    })
}

/// A request of the domain `edge` with the descriptor `a=b`, in the frame of gRPC.
const ASKED: [u8; 21] = [
    0, 0, 0, 0, 16, 0x0a, 4, b'e', b'd', b'g', b'e', 0x12, 8, 0x0a, 6, 0x0a, 1, b'a', 0x12, 1, b'b',
];
