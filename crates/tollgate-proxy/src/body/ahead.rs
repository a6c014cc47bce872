use std::{collections::VecDeque, future::poll_fn, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body::{Body, Frame};
use tokio::time::timeout;
use tollgate::tower::JsonBody;

use super::{BodyError, RequestBody};
use crate::json_bodies::{JsonBodies, MAX_READ_AHEAD, Room};

/// How long a body may take to be read before its request passes on without it.
const READ_AHEAD_TIME: Duration = Duration::from_secs(5);

/// The beginning of a body that was read before its request passed on.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    frames: VecDeque<Result<Frame<Bytes>, BodyError>>,
    bytes: u64,
    room: Option<Room>,
}

/// Reads the body of a request whole, if it is JSON and short, and puts it among its extensions. The
/// request has its body still.
pub(crate) async fn read_json(request: &mut Request<RequestBody>, bodies: &JsonBodies) {
    let headers = request.headers();
    let is_wanted = bodies.are_read()
        && JsonBody::is_announced_by(headers)
        && !headers.contains_key(header::EXPECT)
        && !request.body().is_end_stream();
    if !is_wanted {
        return;
    }
    let stated = request.body().size_hint().exact();
    let most = stated.map_or(Some(MAX_READ_AHEAD), |bytes| usize::try_from(bytes).ok());
    let Some(room) = most.filter(|most| *most <= MAX_READ_AHEAD).and_then(|most| bodies.room(most))
    else {
        return;
    };
    let body = request.body_mut();
    body.ahead = Some(Box::new(Ahead { room: Some(room), ..Ahead::default() }));
    let whole = timeout(READ_AHEAD_TIME, body.read_ahead()).await.ok().flatten();
    // From here on the upstream is waited for, and not the client.
    body.idle.clear();
    if let Some(whole) = whole {
        request.extensions_mut().insert(JsonBody(whole));
    }
}

impl RequestBody {
    /// All of its data, if it ends soundly and is not too long.
    async fn read_ahead(&mut self) -> Option<Bytes> {
        loop {
            let frame = poll_fn(|cx| self.poll_incoming(cx)).await;
            let is_sound = matches!(frame, Some(Ok(_)) | None);
            let ahead = self.ahead.as_mut()?;
            let Some(frame) = frame else { return Some(ahead.joined()) };
            ahead.push(frame);
            if !is_sound || ahead.bytes > MAX_READ_AHEAD as u64 {
                return None;
            }
        }
    }
}

impl Ahead {
    /// The next of what was read.
    pub(super) fn pop(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        let frame = self.frames.pop_front();
        if let Some(Ok(frame)) = &frame {
            self.bytes -= data_bytes(frame);
        }
        if self.frames.is_empty() {
            self.room = None;
        }
        frame
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes of data.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn push(&mut self, frame: Result<Frame<Bytes>, BodyError>) {
        if let Ok(frame) = &frame {
            self.bytes += data_bytes(frame);
        }
        self.frames.push_back(frame);
    }

    fn joined(&self) -> Bytes {
        let mut data = self.frames.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref());
        match (data.next(), data.next()) {
            (None, _) => Bytes::new(),
            (Some(only), None) => only.clone(),
            (Some(first), Some(second)) => {
                let mut whole = BytesMut::from(&first[..]);
                whole.extend_from_slice(second);
                data.for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        }
    }
}

fn data_bytes(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}
