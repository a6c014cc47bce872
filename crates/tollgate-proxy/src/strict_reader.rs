use std::{
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::{
    CloseReason,
    conversation::{Conversation, UpgradeAnswer},
    deadline::Deadline,
    framing::{Framing, SectionLimits, Step, Violation},
    least_rate::{LeastRate, RateTerms},
};

/// A client's connection, of which the reader sees sound bytes only.
///
/// Bytes are judged where they were read, and what is sound stays there; only what cannot go on yet is held here. A head
/// goes on when it is complete and sound. In place of an unsound one goes a request made here, which the
/// [`Conversation`] marks: so the refusal waits for the answers to the requests before it, and the connection ends with
/// it. An unsound body ends in an error, which carries the [`Violation`].
#[derive(Debug)]
pub(crate) struct StrictReader<S> {
    stream: S,
    framing: Framing,
    /// What was read and did not go on; its first `sound` bytes may. Bounded by the limits of the framing.
    held: BytesMut,
    sound: usize,
    state: ReaderState,
    conversation: Arc<Conversation>,
    head: Deadline,
    /// The conversation knows that a head is incomplete.
    is_head_noted: bool,
    write: LeastRate,
    linger: Deadline,
    linger_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    Reading,
    /// Nothing the client sends matters any more.
    Refused,
    /// The body under way is unsound: the next read fails.
    Broken(Violation),
}

/// How long the guard waits for a client's bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StrictReaderTimeouts {
    pub(crate) head: Duration,
    pub(crate) write: Duration,
    pub(crate) rate: RateTerms,
}

/// What goes on in place of an unsound head.
const REFUSED_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";
const READ_BYTES: usize = 8 * 1024;
/// Closing a socket with unread bytes resets it, and the client might never see the answer that tells it why. So an
/// early answer's connection takes, and drops, what the client still sends: for so long and so many bytes.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 4 * 1024 * 1024;

impl<S: AsyncRead + AsyncWrite + Unpin> StrictReader<S> {
    pub(crate) fn new(
        stream: S,
        limits: SectionLimits,
        timeouts: StrictReaderTimeouts,
        conversation: Arc<Conversation>,
    ) -> Self {
        Self {
            stream,
            framing: Framing::new(limits),
            held: BytesMut::new(),
            sound: 0,
            state: ReaderState::Reading,
            conversation,
            head: Deadline::new(timeouts.head),
            is_head_noted: false,
            write: LeastRate::new(timeouts.rate, timeouts.write),
            linger: Deadline::new(LINGER),
            linger_bytes: 0,
        }
    }

    /// Reads to where the reader wants the bytes, and leaves there what is sound of them. The rest is held.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Progress>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if read.is_empty() {
            return Poll::Ready(Ok(Progress::End));
        }
        let mut sound = 0;
        let step = loop {
            match self.framing.step(&read[sound..]) {
                Step::Pass(more) => sound += more,
                step => break step,
            }
        };
        self.held.extend_from_slice(&read[sound..]);
        buf.set_filled(before + sound);
        match step {
            Step::RefuseHead(violation) => self.refuse(violation),
            Step::RefuseBody(violation) => {
                self.conversation.note_close(CloseReason::Malformed);
                self.state = ReaderState::Broken(violation);
            }
            Step::Pass(_) | Step::Hold | Step::AwaitUpgradeAnswer => {}
        }
        if sound == 0 {
            return Poll::Ready(Ok(Progress::Nothing));
        }
        self.end_head();
        Poll::Ready(Ok(Progress::Bytes))
    }

    /// Judges what is held until some of it is sound or more is needed.
    fn check_next(&mut self, cx: &mut Context<'_>) -> Result<HeadCheck, Violation> {
        loop {
            match self.framing.step(&self.held) {
                Step::Pass(sound) => {
                    self.sound = sound;
                    self.end_head();
                    return Ok(HeadCheck::Accept);
                }
                Step::Hold => return Ok(HeadCheck::ReadMore),
                Step::RefuseBody(violation) => return Err(violation),
                Step::RefuseHead(violation) => {
                    self.refuse(violation);
                    return Ok(HeadCheck::Accept);
                }
                Step::AwaitUpgradeAnswer => match self.conversation.poll_upgrade_answer(cx) {
                    Poll::Ready(UpgradeAnswer::Accepted) => self.framing.accept_upgrade(),
                    Poll::Ready(UpgradeAnswer::Declined) => self.framing.decline_upgrade(),
                    Poll::Pending => return Ok(HeadCheck::Wait),
                },
            }
        }
    }

    fn refuse(&mut self, violation: Violation) {
        self.conversation.note_close(CloseReason::Malformed);
        self.conversation.refuse(self.framing.heads() + 1, violation);
        self.state = ReaderState::Refused;
        self.held = BytesMut::from(REFUSED_REQUEST);
        self.sound = self.held.len();
    }

    /// Gives the reader of what is held and sound as much as it has room for.
    fn pass_buffered(&mut self, buf: &mut ReadBuf<'_>) {
        let taken = self.sound.min(buf.remaining());
        buf.put_slice(&self.held[..taken]);
        self.held.advance(taken);
        self.sound -= taken;
        if self.held.is_empty() {
            // An idle connection keeps no buffer.
            self.held = BytesMut::new();
        }
    }

    /// Reads into what is held. Ready with the number of bytes; 0 at the end.
    fn poll_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.held.reserve(READ_BYTES);
        let read = pin!(self.stream.read_buf(&mut self.held)).poll(cx);
        if read.is_pending() && self.held.is_empty() {
            // An idle connection keeps no buffer.
            self.held = BytesMut::new();
        }
        read
    }

    /// Ready once the head under way is too late. Between two requests the connection is merely idle.
    fn poll_head_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let under_way = !self.held.is_empty() || self.framing.heads() == 0;
        if !self.framing.expects_head() || !under_way {
            return Poll::Pending;
        }
        if !self.is_head_noted {
            self.is_head_noted = true;
            self.conversation.begin_head();
        }
        ready!(self.head.poll_passed(cx));
        self.conversation.note_close(CloseReason::SlowHead);
        Poll::Ready(())
    }

    /// Ends the wait for a head, if there is one.
    fn end_head(&mut self) {
        self.head.clear();
        if std::mem::take(&mut self.is_head_noted) {
            self.conversation.end_head();
        }
    }

    /// Whether the client may be in the middle of sending something that nobody will read.
    fn is_truncated(&self) -> bool {
        self.state != ReaderState::Reading
            || !self.held.is_empty()
            || !self.framing.between_messages()
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.held.clear();
            let read = match self.poll_buffer(cx) {
                Poll::Ready(Ok(read)) => read,
                Poll::Ready(Err(_)) => 0,
                Poll::Pending => return self.linger.poll_passed(cx),
            };
            self.linger_bytes += read;
            if read == 0 || self.linger_bytes > LINGER_BYTES {
                return Poll::Ready(());
            }
        }
    }

    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.conversation.is_upgraded() {
            true => ready!(self.write.poll_stalled(cx)),
            false => ready!(self.write.poll_too_slow(cx)),
        };
        self.conversation.note_close(CloseReason::SlowResponse);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
    }
}

enum Progress {
    Bytes,
    Nothing,
    /// The client sends no more.
    End,
}

enum HeadCheck {
    Accept,
    ReadMore,
    Wait,
}

fn written_bytes(written: &Poll<io::Result<usize>>) -> usize {
    match written {
        Poll::Ready(Ok(bytes)) => *bytes,
        _ => 0,
    }
}

fn malformed(violation: Violation) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, violation)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for StrictReader<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        loop {
            if guard.sound > 0 {
                guard.pass_buffered(buf);
                return Poll::Ready(Ok(()));
            }
            match guard.state {
                ReaderState::Reading => {}
                ReaderState::Refused => return Poll::Pending,
                ReaderState::Broken(violation) => return Poll::Ready(Err(malformed(violation))),
            }
            if guard.held.is_empty() {
                match guard.poll_pass(cx, buf)? {
                    Poll::Ready(Progress::Nothing) => continue,
                    Poll::Ready(Progress::Bytes | Progress::End) => return Poll::Ready(Ok(())),
                    Poll::Pending => {
                        ready!(guard.poll_head_timeout(cx));
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            match guard.check_next(cx).map_err(malformed)? {
                HeadCheck::Accept => continue,
                HeadCheck::Wait => return Poll::Pending,
                HeadCheck::ReadMore => {}
            }
            match guard.poll_buffer(cx)? {
                Poll::Ready(0) => return Poll::Ready(Ok(())),
                Poll::Ready(_) => {}
                Poll::Pending => {
                    ready!(guard.poll_head_timeout(cx));
                    guard.refuse(Violation::HeadTimeout);
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for StrictReader<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let guard = self.get_mut();
        match Pin::new(&mut guard.stream).poll_write(cx, buf) {
            Poll::Pending => guard.poll_stalled(cx),
            written => {
                guard.write.moved(written_bytes(&written));
                written
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let guard = self.get_mut();
        match Pin::new(&mut guard.stream).poll_write_vectored(cx, bufs) {
            Poll::Pending => guard.poll_stalled(cx),
            written => {
                guard.write.moved(written_bytes(&written));
                written
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        ready!(Pin::new(&mut guard.stream).poll_shutdown(cx))?;
        if guard.is_truncated() || guard.linger_bytes > 0 {
            // So that a later poll does not judge the emptied buffer anew.
            guard.state = ReaderState::Refused;
            ready!(guard.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
