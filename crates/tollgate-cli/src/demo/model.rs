//! A stand-in for a language model: it streams words and reports the number of tokens at the end.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use hyper::body::{Body, Frame};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The reply of the model to every request.
const REPLY: &str = "A fair gate lets every guest in at the hour that it was promised to them .";

/// The number of tokens of every prompt.
const PROMPT_TOKENS: usize = 4;

/// Returns the number of tokens that the model reports for a response.
pub(crate) fn tokens_of_an_answer() -> usize {
    PROMPT_TOKENS + REPLY.split(' ').count()
}

/// Serves until the task is dropped. After the first word of a response, the model waits for a
/// permit of `gate`, so the demo can show the reservation.
pub(crate) async fn serve(listener: TcpListener, gate: Arc<Semaphore>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            let service = service_fn(|_| {
                let gate = Arc::clone(&gate);
                async { Ok::<_, Infallible>(answer(gate)) }
            });
            // An error is ignored, because it means that the client has disconnected.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn answer(gate: Arc<Semaphore>) -> Response<Events> {
    let (sender, events) = channel(1);
    tokio::spawn(async move {
        // An error is ignored, because it means that the client has disconnected.
        let _ = write(&sender, &gate).await;
    });
    let mut response = Response::new(Events(events));
    let media_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

async fn write(
    sender: &Sender<String>,
    gate: &Semaphore,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for (index, word) in REPLY.split(' ').enumerate() {
        if index == 1 {
            gate.acquire().await?.forget();
        }
        sender.send(format!("{{\"text\":{word:?}}}")).await?;
    }
    let tokens = tokens_of_an_answer();
    sender.send(format!("{{\"usage\":{{\"total_tokens\":{tokens}}}}}")).await?;
    Ok(sender.send("[DONE]".to_owned()).await?)
}

/// A response body of server-sent events, one frame for each event.
struct Events(Receiver<String>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = |data: String| Ok(Frame::data(format!("data: {data}\n\n").into()));
        self.0.poll_recv(context).map(|data| data.map(event))
    }
}
