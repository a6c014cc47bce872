use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use http::{Request, header};
use http_body::{Body, Frame};
use tokio::{task::consume_budget, time::timeout};
use tollgate::model::policy::Ambiguity;
use tollgate::tower::{JsonBody, Peer, UnreadBody};
use tollgate_http::AddressKey;

use super::{BodyError, RequestBody};
use crate::json_bodies::{JsonBodyBuffering, MAX_READ_AHEAD, ReadAheadPermit};
use crate::trusted_proxies::TrustedProxies;

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
    room: ReadAheadPermit,
}

/// Reads the complete body of a request in advance, if the body is JSON and short, and adds it to
/// the request's extensions as [`JsonBody`]. If the body cannot be read, adds the reason as
/// [`UnreadBody`]. The request keeps its body for the upstream.
pub(crate) async fn read_json(
    request: &mut Request<RequestBody>,
    bodies: &JsonBodyBuffering,
    trusted_proxies: &TrustedProxies,
) {
    if !bodies.is_enabled() || request.body().is_end_stream() {
        return;
    }
    // Boxed, because few requests have such a body, and every request would have a larger future.
    match Box::pin(read_to_end(request, bodies, trusted_proxies)).await {
        Ok(whole) => drop(request.extensions_mut().insert(JsonBody(whole))),
        Err(reason) => drop(request.extensions_mut().insert(UnreadBody(reason))),
    }
}

async fn read_to_end(
    request: &mut Request<RequestBody>,
    bodies: &JsonBodyBuffering,
    trusted_proxies: &TrustedProxies,
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
    // The clients of a trusted proxy share its address, so that address has no limit of its own.
    let address = request.extensions().get::<Peer>().map(|Peer(peer)| peer.ip().to_canonical());
    let address = address.filter(|address| !trusted_proxies.contains(*address));
    let room = bodies.permit(address.map(AddressKey::of));
    let body = request.body_mut();
    body.ahead = Some(Box::new(ReadAhead::within(most, room)));
    let whole = timeout(READ_AHEAD_TIME, body.read_ahead()).await;
    // From here on, the proxy waits for the upstream and not for the client.
    body.pace.moved(0);
    body.upload.progress();
    whole.unwrap_or(Err(Ambiguity::BodyLate))
}

impl RequestBody {
    /// Reads this body into the buffer `ahead` until the end of the body. Returns a copy of the
    /// complete data, or the reason why the body is not read to its end.
    async fn read_ahead(&mut self) -> Result<Bytes, Ambiguity> {
        loop {
            let frame = poll_fn(|cx| self.poll_incoming(cx)).await;
            let ahead = self.ahead.as_mut().ok_or(Ambiguity::BodyRoom)?;
            let Some(frame) = frame else { return Ok(ahead.whole()) };
            ahead.push(frame)?;
            // Yield to the runtime, so that the timeout is checked even if pieces arrive without a
            // pause.
            consume_budget().await;
        }
    }
}

impl ReadAhead {
    /// Creates an empty buffer for at most `most` bytes. `room` is the memory reservation of the
    /// buffer, which grows with the buffer and ends when the buffer has been emptied.
    fn within(most: usize, room: ReadAheadPermit) -> Self {
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
            self.room.release();
        }
        next
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0 && self.last.is_none()
    }

    /// Returns the number of buffered bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.within_room() + self.beyond.len()) as u64
    }

    fn within_room(&self) -> usize {
        self.only.len() + self.gathered.len()
    }

    /// Adds the next frame of the body.
    ///
    /// # Errors
    /// The reason why the rest of the body must not be read in advance. The frame stays in the
    /// buffer in this case too, because the upstream receives it.
    fn push(&mut self, frame: Result<Frame<Bytes>, BodyError>) -> Result<(), Ambiguity> {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => {
                let reserved = self.reserve(data.len());
                match reserved {
                    Ok(()) => self.gather(data),
                    Err(_) => self.beyond = data,
                }
                reserved
            }
            Ok(Err(trailers)) => {
                self.last = Some(Ok(trailers));
                Ok(())
            }
            Err(error) => {
                self.last = Some(Err(error));
                Err(Ambiguity::BodyValue)
            }
        }
    }

    /// Reserves memory for `more` bytes, and enlarges the buffer if the bytes need it.
    fn reserve(&mut self, more: usize) -> Result<(), Ambiguity> {
        let bytes = self.within_room();
        if more > self.most - bytes {
            return Err(Ambiguity::BodyTooLarge);
        }
        if bytes == 0 {
            // The first piece is not copied.
            return self.room.grow(more);
        }
        let (needed, capacity) = (bytes + more, self.gathered.capacity());
        if more > 0 && needed > capacity {
            // Little memory may be left. The second size then bounds how often the bytes are copied.
            let sizes = [(capacity * 2).max(LEAST_GATHERED), capacity + LEAST_GATHERED, needed];
            let mut sizes = sizes.into_iter().map(|size| size.clamp(needed, self.most));
            let larger = sizes.find(|size| self.room.grow(*size).is_ok());
            let larger = larger.ok_or(Ambiguity::BodyRoom)?;
            self.gathered.reserve_exact(larger - self.gathered.len());
        }
        Ok(())
    }

    fn gather(&mut self, data: Bytes) {
        if self.within_room() == 0 {
            // Most bodies arrive in one piece, which is not copied.
            self.only = data;
        } else if !data.is_empty() {
            self.gathered.extend_from_slice(&std::mem::take(&mut self.only));
            self.gathered.extend_from_slice(&data);
        }
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
    use std::convert::Infallible;

    use http::{HeaderMap, Response};
    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tollgate_http::{LeastRate, RateTerms};

    use super::*;
    use crate::json_bodies::MAX_READ_AHEAD_TOGETHER;

    fn within(most: usize) -> ReadAhead {
        ReadAhead::within(most, JsonBodyBuffering::default().permit(None))
    }

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
        let mut ahead = within(most);
        for nth in 0..most {
            assert_eq!(ahead.push(piece(b"")), Ok(()));
            assert_eq!(ahead.push(piece(b"x")), Ok(()));
            let room = (2 * (nth + 1)).max(LEAST_GATHERED).min(most);
            assert!(ahead.gathered.capacity() <= room, "{}", ahead.gathered.capacity());
            assert!(ahead.room.bytes() >= ahead.gathered.capacity().max(nth + 1));
        }
        assert_eq!(ahead.bytes(), 10_000);
        assert_eq!(ahead.push(piece(b"yy")), Err(Ambiguity::BodyTooLarge));
        assert_eq!(ahead.bytes(), 10_002);
        assert_eq!(popped(ahead), ["x".repeat(most), "yy".to_owned()]);
    }

    /// The bug: a body was refused if the doubled buffer did not fit into the remaining memory,
    /// although the bytes did.
    #[test]
    fn a_body_that_fits_was_refused_for_its_larger_buffer() {
        let bodies = JsonBodyBuffering::default();
        let mut others = bodies.permit(None);
        assert_eq!(others.grow(MAX_READ_AHEAD_TOGETHER - 5_000), Ok(()));
        let mut ahead = ReadAhead::within(10_000, bodies.permit(None));
        for nth in 1..=5_000 {
            assert_eq!(ahead.push(piece(b"x")), Ok(()), "{nth}");
            assert!(ahead.room.bytes() >= ahead.gathered.capacity().max(nth));
        }
        assert_eq!(ahead.push(piece(b"y")), Err(Ambiguity::BodyRoom));
        assert_eq!(popped(ahead), ["x".repeat(5_000), "y".to_owned()]);
    }

    #[test]
    fn what_was_read_passes_on_in_order() {
        let mut ahead = within(9);
        for data in [b"one", b"two", b"six"] {
            assert_eq!(ahead.push(piece(data)), Ok(()));
        }
        assert_eq!(ahead.push(Ok(Frame::trailers(HeaderMap::new()))), Ok(()));
        assert_eq!(ahead.whole(), "onetwosix");
        assert_eq!(popped(ahead), ["onetwosix", "trailers"]);

        let mut ahead = within(9);
        assert_eq!(ahead.push(piece(b"one")), Ok(()));
        assert_eq!(ahead.push(Err(BodyError::TooLarge { limit: 1 })), Err(Ambiguity::BodyValue));
        assert_eq!(popped(ahead), ["one", "the body is larger than 1 bytes"]);
        assert!(popped(within(0)).is_empty());
    }

    /// The bug: after the read had timed out, the body still counted as waiting for its client, so
    /// an upstream that did not accept the part that had arrived had no time limit.
    #[tokio::test(start_paused = true)]
    async fn a_read_that_timed_out_still_waited_for_the_client() {
        let (mut client, server) = tokio::io::duplex(1_024);
        let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
        let start = format!("{head}content-length: 9\r\n\r\n[1,");
        client.write_all(start.as_bytes()).await.expect("the server reads");
        let service = service_fn(|request: Request<Incoming>| async move {
            let pace = LeastRate::new(RateTerms::NONE, Duration::from_secs(60));
            let mut request = request.map(|incoming| RequestBody::new(incoming, 9, pace));
            let bodies = JsonBodyBuffering::default();
            bodies.enable();
            read_json(&mut request, &bodies, &TrustedProxies::default()).await;
            let unread = request.extensions().get::<UnreadBody>().copied();
            assert_eq!(unread, Some(UnreadBody(Ambiguity::BodyLate)));
            assert!(!request.body().upload().waits_for_client());
            Ok::<_, Infallible>(Response::new(String::from("checked")))
        });
        let serving = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        let mut answer = vec![0; 1_024];
        let read = async { client.read(&mut answer).await.expect("an answer") };
        let (read, served) = tokio::join!(read, serving);
        served.expect("a connection");
        assert!(answer[..read].ends_with(b"checked"), "{}", answer[..read].escape_ascii());
    }

    #[test]
    fn the_only_piece_is_not_copied() {
        let data = Bytes::from_static(b"only");
        let mut ahead = within(4);
        assert_eq!(ahead.push(piece(b"")), Ok(()));
        assert_eq!(ahead.push(Ok(Frame::data(data.clone()))), Ok(()));
        assert_eq!(ahead.whole().as_ptr(), data.as_ptr());
    }
}
