//! A client of the gRPC listener that shows the raw frames.

use std::io;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::node::PATIENCE;

pub(crate) const ASK: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
pub(crate) const HEALTH: &str = "/grpc.health.v1.Health/Check";
pub(crate) const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// A client's connection to the gRPC listener.
pub(crate) struct GrpcClient {
    runtime: Runtime,
    calls: SendRequest<Full<Bytes>>,
    address: String,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Called {
    Answered {
        /// The `grpc-status`.
        status: String,
        /// The message before the status, in gRPC framing.
        message: Vec<u8>,
    },
    /// The call was not sent, because the server had announced that it accepts no more calls on
    /// this connection.
    Unsent,
}

impl GrpcClient {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let calls = runtime.block_on(async {
            let stream = TcpStream::connect(address).await?;
            // As in other gRPC clients. Otherwise the second frame of a call waits for the
            // acknowledgement of the first frame, which is sent 40 ms later.
            stream.set_nodelay(true)?;
            let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
            let (calls, connection) = handshake.map_err(io::Error::other)?;
            tokio::spawn(connection);
            io::Result::Ok(calls)
        })?;
        Ok(Self { runtime, calls, address: address.to_owned() })
    }

    /// Calls `path`.
    ///
    /// # Errors
    /// The call was sent, and the connection ended before the response.
    pub(crate) fn call(&mut self, path: &str, token: Option<&str>) -> hyper::Result<Called> {
        let message: &[u8] = if path == ASK { &ASKED } else { &[0; 5] };
        let mut request = http::Request::post(format!("http://{}{path}", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(message))).unwrap();
        let calls = &mut self.calls;
        let called = async {
            if calls.ready().await.is_err() {
                return Ok(Called::Unsent);
            }
            let answer = match calls.try_send_request(request).await {
                Ok(answer) => answer,
                Err(error) if error.message().is_some() => return Ok(Called::Unsent),
                Err(error) => return Err(error.into_error()),
            };
            let early = answer.headers().get("grpc-status").cloned();
            let body = answer.into_body().collect().await?;
            let late = body.trailers().and_then(|fields| fields.get("grpc-status").cloned());
            let status = early.or(late).unwrap().to_str().unwrap().to_owned();
            Ok(Called::Answered { status, message: body.to_bytes().to_vec() })
        };
        self.runtime.block_on(async { timeout(PATIENCE, called).await.expect("an answer in time") })
    }

    /// Sends one request and returns whether it was answered. The status of the answer must be OK.
    ///
    /// # Errors
    /// The same errors as [`call`](Self::call).
    pub(crate) fn check(&mut self) -> hyper::Result<bool> {
        match self.call(ASK, None)? {
            Called::Answered { status, message } => {
                // The overall status is the first field of the message.
                assert_eq!((&*status, &message[5..7]), ("0", &[0x08, 1][..]));
                Ok(true)
            }
            Called::Unsent => Ok(false),
        }
    }
}

/// Calls `path` on a new connection. Returns the `grpc-status`, and the message that was received
/// before it.
pub(crate) fn call(address: &str, path: &str, token: Option<&str>) -> (String, Vec<u8>) {
    match GrpcClient::connect(address).unwrap().call(path, token).unwrap() {
        Called::Answered { status, message } => (status, message),
        Called::Unsent => panic!("a connection on which nothing is served"),
    }
}

/// A request for the domain `edge` with the descriptor `a=b`, in gRPC framing.
const ASKED: [u8; 21] = [
    0, 0, 0, 0, 16, 0x0a, 4, b'e', b'd', b'g', b'e', 0x12, 8, 0x0a, 6, 0x0a, 1, b'a', 0x12, 1, b'b',
];
