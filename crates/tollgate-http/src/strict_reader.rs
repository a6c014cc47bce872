//! The reader that checks the framing of a connection before HTTP is parsed. The module `framing`
//! explains why this check is written by hand.

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
    close_reason::CloseReason,
    conversation::{Conversation, UpgradeAnswer},
    deadline::Deadline,
    framing::{Framing, SectionLimits, Step, Violation},
    least_rate::{LeastRate, RateTerms},
};

/// A client's connection that passes on only valid bytes.
///
/// The reader examines bytes in the caller's buffer, and valid bytes stay in that buffer. The
/// reader itself stores only bytes that cannot be passed on yet. A head is passed on when it is
/// complete and valid. An invalid head is replaced by a request that the reader creates and that
/// the [`Conversation`] marks. The refusal is then sent after the responses to earlier requests,
/// and the connection ends with the refusal. A read of an invalid body fails with an error that
/// contains the [`Violation`].
#[derive(Debug)]
pub struct StrictReader<S> {
    stream: S,
    framing: Framing,
    /// Bytes that were read and not passed on. The first `sound` bytes are valid and may be passed
    /// on. The limits of the framing bound the size of this buffer.
    held: BytesMut,
    sound: usize,
    state: ReaderState,
    conversation: Arc<Conversation>,
    head: Deadline,
    /// Whether the reader has reported to the conversation that a head is incomplete.
    is_head_noted: bool,
    write: LeastRate,
    /// Whether the reader has reported to the conversation that bytes are unsent.
    has_unsent: bool,
    linger: Deadline,
    linger_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    Reading,
    /// The reader has refused a request and ignores all further input.
    Refused,
    /// The current body is invalid: the next read fails.
    Broken(Violation),
}

/// The time limits for a client's bytes.
#[derive(Debug, Clone, Copy)]
pub struct StrictReaderTimeouts {
    /// The longest time until a request head is complete, from the first byte of the head or, for
    /// the first head, from the start of the connection.
    pub head: Duration,
    /// The longest time for which a client may read no byte of a response.
    pub write: Duration,
    /// The least rate at which the client must read a response.
    pub rate: RateTerms,
}

/// The request that the reader passes on in place of an invalid head.
const REFUSED_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";
const READ_BYTES: usize = 8 * 1024;
/// The longest time for which input is read and discarded after an early response. `LINGER_BYTES`
/// bounds the number of these bytes. Closing a socket with unread bytes resets the connection, and
/// the client might never receive the response.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 4 * 1024 * 1024;

impl<S: AsyncRead + AsyncWrite + Unpin> StrictReader<S> {
    /// Creates a reader of `stream` with the given `limits` and `timeouts`. The reader shares
    /// `conversation` with the service of the connection.
    pub fn new(
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
            has_unsent: false,
            linger: Deadline::new(LINGER),
            linger_bytes: 0,
        }
    }

    /// Reads from the client into `buf`, and leaves only the valid bytes in `buf`. Bytes that
    /// cannot be passed on yet move into the reader.
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

    /// Examines the stored bytes until some of them are valid, more bytes are needed, or the answer
    /// to an upgrade request is needed. Returns an error if the current body is invalid.
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

    /// Copies as many of the valid stored bytes to `buf` as fit.
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

    /// Reads from the client and appends the bytes to the stored bytes. Returns `Ready` with the
    /// number of bytes that were read, or 0 at the end of the stream.
    fn poll_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.held.reserve(READ_BYTES);
        let read = pin!(self.stream.read_buf(&mut self.held)).poll(cx);
        if read.is_pending() && self.held.is_empty() {
            // An idle connection keeps no buffer.
            self.held = BytesMut::new();
        }
        read
    }

    /// Returns `Ready` once the time limit for the current head has passed. Between two requests,
    /// no head is expected yet, so this time limit does not apply.
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

    /// Ends the time limit for a head, and records in the conversation that the head is complete.
    fn end_head(&mut self) {
        self.head.clear();
        if std::mem::take(&mut self.is_head_noted) {
            self.conversation.end_head();
        }
    }

    /// Returns whether a part of the client's input is unread or may still arrive: the rest of a
    /// request, or bytes after a refused request.
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

    /// Returns `Ready` with an error once the client reads too slowly. The caller has written
    /// `written` bytes, or waits until the client reads.
    fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.write.moved(written_bytes(&written));
            return written;
        }
        self.note_unsent(true);
        match self.conversation.is_upgraded() {
            true => ready!(self.write.poll_stalled(cx)),
            false => ready!(self.write.poll_too_slow(cx)),
        };
        Poll::Ready(Err(self.too_slow()))
    }

    fn too_slow(&self) -> io::Error {
        self.conversation.note_close(CloseReason::SlowResponse);
        io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")
    }

    /// Records in the conversation whether bytes wait until the client reads.
    fn note_unsent(&mut self, has_unsent: bool) {
        if self.has_unsent != has_unsent {
            self.has_unsent = has_unsent;
            self.conversation.note_unsent(has_unsent);
        }
    }
}

enum Progress {
    Bytes,
    Nothing,
    /// The client has closed its sending side.
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
        let written = Pin::new(&mut guard.stream).poll_write(cx, buf);
        guard.after_write(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let guard = self.get_mut();
        let written = Pin::new(&mut guard.stream).poll_write_vectored(cx, bufs);
        guard.after_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        let flushed = Pin::new(&mut guard.stream).poll_flush(cx);
        if flushed.is_ready() {
            // A write is always followed by a flush, so the write need not record its end.
            if guard.has_unsent {
                guard.write.moved(0);
                guard.note_unsent(false);
            }
            return flushed;
        }
        guard.note_unsent(true);
        // The time limit of a tunnel applies to an upgraded connection.
        if !guard.conversation.is_upgraded() {
            ready!(guard.write.poll_unflushed(cx));
            return Poll::Ready(Err(guard.too_slow()));
        }
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        ready!(Pin::new(&mut guard.stream).poll_shutdown(cx))?;
        if guard.is_truncated() || guard.linger_bytes > 0 {
            // A later poll must not examine the emptied buffer again.
            guard.state = ReaderState::Refused;
            ready!(guard.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
