//! Callers in a closed loop: each connection sends its next request after the answer to the
//! previous one.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::wire::{Decision, Unreadable, Wire};

/// The largest number of bytes that are read at once.
const READ: usize = 64 * 1024;

/// The load that is sent to a server.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The address of the server.
    pub address: SocketAddr,
    /// The protocol, which also encodes the requests.
    pub wire: Wire,
    /// The number of connections.
    pub connections: usize,
    /// The number of requests that are pending on each connection at a time.
    pub in_flight: usize,
}

/// The error with which a load ends.
pub type LoadError = Box<dyn Error + Send + Sync>;

impl Load {
    /// Sends a request for each of `subjects`, and returns the number of admitted requests.
    ///
    /// # Errors
    /// If a connection breaks, or an answer is invalid.
    pub async fn run(&self, subjects: &Arc<[u32]>) -> Result<usize, LoadError> {
        let mut callers = JoinSet::new();
        for caller in 0..self.connections {
            let (load, subjects) = (*self, Arc::clone(subjects));
            // The callers receive the subjects in turns. The numbers of requests of any two callers
            // therefore differ by at most one.
            let own = (caller..subjects.len()).step_by(load.connections);
            let own: Vec<String> = own.map(|index| subject(subjects[index])).collect();
            match load.wire {
                Wire::Grpc(call) => callers.spawn(load.call(call.path, own)),
                Wire::Http2(call) => callers.spawn(load.call(call.path, own)),
                Wire::Http(_) | Wire::Resp | Wire::Charge(_) => callers.spawn(load.converse(own)),
            };
        }
        let mut admitted = 0;
        while let Some(caller) = callers.join_next().await {
            admitted += caller??;
        }
        Ok(admitted)
    }

    /// Sends requests in groups. The size of a group is the number of requests that may be pending.
    /// Sends the next group when all requests of the previous group are answered.
    async fn converse(self, subjects: Vec<String>) -> Result<usize, LoadError> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (mut out, mut input, mut admitted) = (Vec::new(), Vec::with_capacity(READ), 0);
        for together in subjects.chunks(self.in_flight) {
            out.clear();
            together.iter().for_each(|subject| self.wire.write(subject, &mut out));
            stream.write_all(&out).await?;
            let mut waiting = together.len();
            while waiting > 0 {
                let mut read = 0;
                while let Some(answer) = self.wire.read(&input[read..])? {
                    read += answer.length;
                    waiting -= 1;
                    admitted += usize::from(answer.decision == Decision::Admitted);
                }
                input.drain(..read);
                if waiting > 0 && stream.read_buf(&mut input).await? == 0 {
                    return Err("the server closed the connection".into());
                }
            }
        }
        Ok(admitted)
    }

    /// Sends requests over one HTTP/2 connection. At most as many calls as may be pending are open
    /// at a time.
    async fn call(self, path: &str, subjects: Vec<String>) -> Result<usize, LoadError> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
        let connection = tokio::spawn(connection);
        let subjects: Arc<[String]> = subjects.into();
        let uri: Uri = format!("http://{}{}", self.address, path).parse()?;
        let mut callers = JoinSet::new();
        for caller in 0..self.in_flight {
            let (sender, uri, subjects) = (sender.clone(), uri.clone(), Arc::clone(&subjects));
            callers.spawn(async move {
                let mut admitted = 0;
                for subject in subjects.iter().skip(caller).step_by(self.in_flight) {
                    let decision = send(sender.clone(), &uri, self.wire, subject).await?;
                    admitted += usize::from(decision == Decision::Admitted);
                }
                Ok::<_, LoadError>(admitted)
            });
        }
        let mut admitted = 0;
        while let Some(caller) = callers.join_next().await {
            admitted += caller??;
        }
        connection.abort();
        Ok(admitted)
    }
}

/// Returns the name of a subject. All names are 17 bytes long.
fn subject(number: u32) -> String {
    format!("user:{number:012}")
}

async fn send(
    mut sender: SendRequest<Full<Bytes>>,
    uri: &Uri,
    wire: Wire,
    subject: &str,
) -> Result<Decision, LoadError> {
    let mut message = Vec::new();
    wire.write(subject, &mut message);
    let is_grpc = matches!(wire, Wire::Grpc(_));
    let request = Request::post(uri.clone());
    let request = match is_grpc {
        true => request.header("content-type", "application/grpc").header("te", "trailers"),
        false => request.header("content-type", "application/json"),
    };
    let request = request.body(Full::new(Bytes::from(message)))?;
    sender.ready().await?;
    let answer = sender.send_request(request).await?;
    let (status, headers) = (answer.status(), format!("{:?}", answer.headers()));
    let body = answer.into_body().collect().await?;
    let trailer = body.trailers().and_then(|fields| fields.get("grpc-status"));
    let is_ok = match is_grpc {
        true => trailer.is_some_and(|status| status == "0"),
        false => status.is_success(),
    };
    if !is_ok {
        return Err(format!("the server answered {status} {headers} {:?}", body.trailers()).into());
    }
    let bytes = body.to_bytes();
    match wire.read(&bytes)? {
        Some(answer) => Ok(answer.decision),
        None => Err(Unreadable::of(&bytes).into()),
    }
}
