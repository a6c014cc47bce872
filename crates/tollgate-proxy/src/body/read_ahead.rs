use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use http::{Request, header};
use http_body::{Body, Frame};
use tokio::{task::consume_budget, time::timeout};
use tollgate::model::policy::Ambiguity;
use tollgate::tower::{JsonBody, UnreadBody};

use super::{BodyError, RequestBody};
use crate::json_bodies::{JsonBodyBuffering, MAX_READ_AHEAD, ReadAheadPermit};

/// The longest time for which a body is read in advance, before the decision on its request. After
/// this time, the layer decides without the body, and the part that has arrived is kept for the
/// upstream.
const READ_AHEAD_TIME: Duration = Duration::from_secs(5);

/// The smallest capacity, in bytes, of the buffer into which the pieces of a body are copied.
const LEAST_GATHERED: usize = 1024;

/// A buffer with the part of a body that was read in advance, before the decision on its request.
///
/// The client chooses how the body is split into pieces, and each piece would occupy more memory
/// than its bytes. The pieces are therefore copied into one buffer, within the memory that was
/// reserved.
#[derive(Debug)]
pub(super) struct ReadAhead {
    /// The first piece, as long as no second one has arrived.
    only: Bytes,
    /// All pieces of the body, once a second one has arrived. The capacity of this buffer stays
    /// within the reserved memory.
    gathered: Vec<u8>,
    /// The piece of the body that did not fit into the reserved memory, and that was read last.
    beyond: Bytes,
    /// The trailers of the body, or the error that ended the body.
    last: Option<Result<Frame<Bytes>, BodyError>>,
    most: usize,
    room: Option<ReadAheadPermit>,
}

/// Whether to read the next piece of the body in advance, or to stop reading in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadStep {
    Continue,
    Done,
}

/// Reads the complete body of a request in advance, if the body is JSON and short, and adds it to
/// the request's extensions as [`JsonBody`]. If the body cannot be read, adds the reason as
/// [`UnreadBody`]. The request keeps its body for the upstream.
pub(crate) async fn read_json(request: &mut Request<RequestBody>, bodies: &JsonBodyBuffering) {
    if !bodies.is_enabled() || request.body().is_end_stream() {
        return;
    }
    // Boxed, because few requests have such a body, and every request would have a larger future.
    match Box::pin(read_to_end(request, bodies)).await {
        Ok(whole) => drop(request.extensions_mut().insert(JsonBody(whole))),
        Err(reason) => drop(request.extensions_mut().insert(UnreadBody(reason))),
    }
}

async fn read_to_end(
    request: &mut Request<RequestBody>,
    bodies: &JsonBodyBuffering,
) -> Result<Bytes, Ambiguity> {
    if !JsonBody::is_announced_by(request.headers()) {
        return Err(Ambiguity::BodyType);
    }
    if request.headers().contains_key(header::EXPECT) {
        return Err(Ambiguity::BodyExpectation);
    }
    let stated = request.body().size_hint().exact();
    let most = stated.map_or(Some(MAX_READ_AHEAD), |bytes| usize::try_from(bytes).ok());
    let most = most.filter(|most| *most <= MAX_READ_AHEAD).ok_or(Ambiguity::BodyTooLarge)?;
    let room = bodies.acquire(most).ok_or(Ambiguity::BodyRoom)?;
    let body = request.body_mut();
    body.ahead = Some(Box::new(ReadAhead::within(most, Some(room))));
    let whole = timeout(READ_AHEAD_TIME, body.read_ahead()).await;
    // From here on, the proxy waits for the upstream and not for the client.
    body.pace.moved(0);
    match whole {
        Ok(Some(whole)) => Ok(whole),
        Ok(None) if body.ahead.as_ref().is_some_and(|ahead| ahead.is_broken()) => {
            Err(Ambiguity::BodyValue)
        }
        Ok(None) => Err(Ambiguity::BodyTooLarge),
        Err(_) => Err(Ambiguity::BodyLate),
    }
}

impl RequestBody {
    /// Reads this body into the buffer `ahead` until the end of the body. Returns a copy of the
    /// complete data, or `None` if the body fails or is too long.
    async fn read_ahead(&mut self) -> Option<Bytes> {
        loop {
            let frame = poll_fn(|cx| self.poll_incoming(cx)).await;
            let ahead = self.ahead.as_mut()?;
            let Some(frame) = frame else { return Some(ahead.whole()) };
            if ahead.push(frame) == ReadStep::Done {
                return None;
            }
            // Yield to the runtime, so that the timeout is checked even if pieces arrive without a
            // pause.
            consume_budget().await;
        }
    }
}

impl ReadAhead {
    /// Creates an empty buffer for at most `most` bytes. `room` is the memory reservation of the
    /// buffer, which ends when the buffer has been emptied.
    fn within(most: usize, room: Option<ReadAheadPermit>) -> Self {
        let (only, gathered, beyond) = (Bytes::new(), Vec::new(), Bytes::new());
        Self { only, gathered, beyond, last: None, most, room }
    }

    /// Removes and returns the next buffered frame, or `None` if the buffer is empty.
    pub(super) fn pop(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        let data = Some(self.take_data())
            .filter(|data| !data.is_empty())
            .or_else(|| Some(std::mem::take(&mut self.beyond)))
            .filter(|data| !data.is_empty());
        let next = data.map(|data| Ok(Frame::data(data))).or_else(|| self.last.take());
        if self.is_empty() {
            self.room = None;
        }
        next
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0 && self.last.is_none()
    }

    /// Returns whether the body ended with an error, so it is incomplete.
    fn is_broken(&self) -> bool {
        matches!(self.last, Some(Err(_)))
    }

    /// Returns the number of buffered bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.within_room() + self.beyond.len()) as u64
    }

    fn within_room(&self) -> usize {
        self.only.len() + self.gathered.len()
    }

    fn push(&mut self, frame: Result<Frame<Bytes>, BodyError>) -> ReadStep {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) if data.len() > self.most - self.within_room() => {
                self.beyond = data;
                ReadStep::Done
            }
            Ok(Ok(data)) => {
                self.gather(data);
                ReadStep::Continue
            }
            Ok(Err(trailers)) => {
                self.last = Some(Ok(trailers));
                ReadStep::Continue
            }
            Err(error) => {
                self.last = Some(Err(error));
                ReadStep::Done
            }
        }
    }

    fn gather(&mut self, data: Bytes) {
        let bytes = self.within_room();
        if bytes == 0 {
            // Most bodies arrive in one piece, which is not copied.
            self.only = data;
            return;
        }
        if data.is_empty() {
            return;
        }
        let (needed, capacity) = (bytes + data.len(), self.gathered.capacity());
        if needed > capacity {
            let larger = needed.max(capacity * 2).max(LEAST_GATHERED).min(self.most);
            self.gathered.reserve_exact(larger - self.gathered.len());
        }
        self.gathered.extend_from_slice(&std::mem::take(&mut self.only));
        self.gathered.extend_from_slice(&data);
    }

    /// Returns a copy of all buffered data. The data also stays in the buffer.
    fn whole(&mut self) -> Bytes {
        self.only = self.take_data();
        self.only.clone()
    }

    fn take_data(&mut self) -> Bytes {
        match self.gathered.is_empty() {
            true => std::mem::take(&mut self.only),
            false => Bytes::from(std::mem::take(&mut self.gathered)),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn piece(data: &'static [u8]) -> Result<Frame<Bytes>, BodyError> {
        Ok(Frame::data(Bytes::from_static(data)))
    }

    /// Returns all buffered frames as text.
    fn popped(mut ahead: ReadAhead) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(next) = ahead.pop() {
            all.push(match next.map(Frame::into_data) {
                Ok(Ok(data)) => String::from_utf8(data.to_vec()).expect("text"),
                Ok(Err(_)) => "trailers".to_owned(),
                Err(error) => error.to_string(),
            });
        }
        assert!(ahead.is_empty());
        all
    }

    #[test]
    fn pieces_take_no_more_than_their_bytes() {
        let most = 10_000;
        let mut ahead = ReadAhead::within(most, None);
        for nth in 0..most {
            assert_eq!(ahead.push(piece(b"")), ReadStep::Continue);
            assert_eq!(ahead.push(piece(b"x")), ReadStep::Continue);
            let room = (2 * (nth + 1)).max(LEAST_GATHERED).min(most);
            assert!(ahead.gathered.capacity() <= room, "{}", ahead.gathered.capacity());
        }
        assert_eq!(ahead.bytes(), 10_000);
        assert_eq!(ahead.push(piece(b"yy")), ReadStep::Done);
        assert_eq!(ahead.bytes(), 10_002);
        assert_eq!(popped(ahead), ["x".repeat(most), "yy".to_owned()]);
    }

    #[test]
    fn what_was_read_passes_on_in_order() {
        let mut ahead = ReadAhead::within(9, None);
        for data in [b"one", b"two", b"six"] {
            assert_eq!(ahead.push(piece(data)), ReadStep::Continue);
        }
        assert_eq!(ahead.push(Ok(Frame::trailers(HeaderMap::new()))), ReadStep::Continue);
        assert_eq!(ahead.whole(), "onetwosix");
        assert_eq!(popped(ahead), ["onetwosix", "trailers"]);

        let mut ahead = ReadAhead::within(9, None);
        ahead.push(piece(b"one"));
        assert_eq!(ahead.push(Err(BodyError::TooLarge { limit: 1 })), ReadStep::Done);
        assert_eq!(popped(ahead), ["one", "the body is larger than 1 bytes"]);
        assert!(popped(ReadAhead::within(0, None)).is_empty());
    }

    #[test]
    fn the_only_piece_is_not_copied() {
        let data = Bytes::from_static(b"only");
        let mut ahead = ReadAhead::within(4, None);
        ahead.push(piece(b""));
        ahead.push(Ok(Frame::data(data.clone())));
        assert_eq!(ahead.whole().as_ptr(), data.as_ptr());
    }
}
