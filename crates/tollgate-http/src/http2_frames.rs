//! A limit on the frames of an HTTP/2 connection that are not requests.
//!
//! The limit is written by hand, because hyper and h2 limit resets, but neither `WINDOW_UPDATE` nor
//! `PRIORITY`. Without this limit, one connection sent 6,900,000 such frames in a second, which
//! kept a core 91 % busy.

use std::fmt;
use std::time::Instant;

/// The number of control frames that a connection may send before it has sent a request.
pub const CONTROL_FRAMES: u32 = 10_000;

/// The number of control frames that a connection may send in each second in which it transfers no
/// request and no response.
pub const CONTROL_FRAMES_PER_SECOND: u32 = 1_000;

/// The number of additional control frames that a connection may send for each of its requests.
pub const CONTROL_FRAMES_PER_REQUEST: u32 = 16;

/// The number of response bytes that allow a connection to send one more control frame. Clients
/// confirm the bytes that they have read with `WINDOW_UPDATE` frames.
pub const BYTES_PER_CONTROL_FRAME: usize = 64;

/// The most unused control frames that a connection can save up from its requests and responses.
pub const MAX_CONTROL_FRAMES: u32 = 65_536;

/// The connection preface: the bytes with which a client starts an HTTP/2 connection.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of the head of a frame, in bytes.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// Counts the control frames in the bytes that a client sends, and finds the connections that send
/// nothing else.
///
/// A control frame costs a server work and its client nearly nothing: `WINDOW_UPDATE`, `PRIORITY`,
/// `PING`, `SETTINGS`, `RST_STREAM`, empty `DATA`, frames of unknown types. Clients need a few
/// control frames for each request and for each part of a response that they read, so each request
/// and each response adds to the number of control frames that a client may send. Bytes that are
/// not HTTP/2 are not counted.
#[derive(Debug)]
pub struct FrameMeter {
    state: State,
    left: u32,
    /// The time up to which `left` contains the frames that [`CONTROL_FRAMES_PER_SECOND`] allows.
    /// `None` until `left` is used up for the first time.
    refilled_at: Option<Instant>,
    began: Instant,
}

#[derive(Debug)]
enum State {
    /// The connection preface is arriving. The number is the count of its bytes that have arrived.
    Preface(usize),
    /// The head of a frame is arriving. The number is the count of its bytes that have arrived.
    Head([u8; HEAD], usize),
    /// The payload of a frame is arriving. The number is the count of its bytes that have not
    /// arrived.
    Payload(usize),
    /// The connection does not use HTTP/2.
    Other,
}

/// The error of a connection whose client sent too many control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyControlFrames;

impl fmt::Display for TooManyControlFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client sent too many HTTP/2 control frames")
    }
}

impl std::error::Error for TooManyControlFrames {}

impl FrameMeter {
    /// Creates the meter of a connection that begins `now`.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { state: State::Preface(0), left: CONTROL_FRAMES, refilled_at: None, began: now }
    }

    /// Counts the frames in `bytes`, which the client sent after the bytes of the last call. Calls
    /// `now` only if the client has used up its control frames.
    ///
    /// # Errors
    /// [`TooManyControlFrames`]: the connection should be closed.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        now: impl Fn() -> Instant,
    ) -> Result<(), TooManyControlFrames> {
        while let Some(first) = bytes.first() {
            match &mut self.state {
                State::Other => return Ok(()),
                State::Preface(seen) => {
                    if PREFACE[*seen] != *first {
                        self.state = State::Other;
                        return Ok(());
                    }
                    *seen += 1;
                    bytes = &bytes[1..];
                    if *seen == PREFACE.len() {
                        self.state = State::Head([0; HEAD], 0);
                    }
                }
                State::Payload(left) => {
                    let passed = bytes.len().min(*left);
                    bytes = &bytes[passed..];
                    *left -= passed;
                    if *left == 0 {
                        self.state = State::Head([0; HEAD], 0);
                    }
                }
                State::Head(head, seen) => {
                    let passed = bytes.len().min(HEAD - *seen);
                    head[*seen..*seen + passed].copy_from_slice(&bytes[..passed]);
                    bytes = &bytes[passed..];
                    *seen += passed;
                    if *seen == HEAD {
                        let [a, b, c, kind, ..] = *head;
                        let length = u32::from_be_bytes([0, a, b, c]) as usize;
                        self.state = match length {
                            0 => State::Head([0; HEAD], 0),
                            length => State::Payload(length),
                        };
                        self.count(kind, length, &now)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Records that `bytes` bytes of responses were sent. The client may then send the control
    /// frames with which it confirms these bytes.
    pub fn send(&mut self, bytes: usize) {
        self.add(u32::try_from(bytes / BYTES_PER_CONTROL_FRAME).unwrap_or(u32::MAX));
    }

    fn count(
        &mut self,
        kind: u8,
        length: usize,
        now: &impl Fn() -> Instant,
    ) -> Result<(), TooManyControlFrames> {
        match kind {
            HEADERS => self.add(CONTROL_FRAMES_PER_REQUEST),
            // The HTTP/2 library limits these frames.
            CONTINUATION => {}
            DATA if length > 0 => {}
            _ => {
                if self.left == 0 {
                    self.refill(now());
                }
                self.left = self.left.checked_sub(1).ok_or(TooManyControlFrames)?;
            }
        }
        Ok(())
    }

    fn refill(&mut self, now: Instant) {
        let since = self.refilled_at.unwrap_or(self.began);
        let passed = now.saturating_duration_since(since).as_millis();
        let added = passed * u128::from(CONTROL_FRAMES_PER_SECOND) / 1_000;
        if added > 0 {
            self.refilled_at = Some(now);
            let added = u32::try_from(added).unwrap_or(u32::MAX);
            self.left = added.min(CONTROL_FRAMES);
        }
    }

    fn add(&mut self, frames: u32) {
        let most = MAX_CONTROL_FRAMES.max(self.left);
        self.left = self.left.saturating_add(frames).min(most);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const WINDOW_UPDATE: u8 = 8;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let [_, a, b, c] = u32::try_from(length).unwrap().to_be_bytes();
        let mut frame = vec![a, b, c, kind, 0, 0, 0, 0, 1];
        frame.resize(HEAD + length, 0xff);
        frame
    }

    fn begun(now: Instant) -> FrameMeter {
        let mut meter = FrameMeter::new(now);
        meter.receive(PREFACE, || now).unwrap();
        meter
    }

    /// Sends control frames until the meter refuses them.
    fn until_refused(meter: &mut FrameMeter, now: Instant) -> u32 {
        let update = frame(WINDOW_UPDATE, 0);
        (0..).find(|_| meter.receive(&update, || now).is_err()).unwrap()
    }

    #[test]
    fn control_frames_alone_are_refused() {
        let now = Instant::now();
        let mut meter = begun(now);
        assert_eq!(until_refused(&mut meter, now), CONTROL_FRAMES);
        let later = now + Duration::from_secs(2);
        assert_eq!(until_refused(&mut meter, later), 2 * CONTROL_FRAMES_PER_SECOND);
        let much_later = now + Duration::from_secs(1_000);
        assert_eq!(until_refused(&mut meter, much_later), CONTROL_FRAMES);
    }

    #[test]
    fn requests_and_responses_add_control_frames() {
        let now = Instant::now();
        let mut meter = begun(now);
        until_refused(&mut meter, now);
        for kind in [HEADERS, DATA, CONTINUATION] {
            meter.receive(&frame(kind, 100), || now).unwrap();
        }
        meter.send(10 * BYTES_PER_CONTROL_FRAME);
        assert_eq!(until_refused(&mut meter, now), CONTROL_FRAMES_PER_REQUEST + 10);
        meter.send(usize::MAX);
        assert_eq!(until_refused(&mut meter, now), MAX_CONTROL_FRAMES);
    }

    #[test]
    fn frames_are_found_however_they_are_split() {
        let now = Instant::now();
        let mut bytes = PREFACE.to_vec();
        for _ in 0..100 {
            bytes.extend(frame(WINDOW_UPDATE, 4));
            bytes.extend(frame(DATA, 0));
            bytes.extend(frame(HEADERS, 700));
            bytes.extend(frame(0xee, 300));
        }
        for part in [1, 2, 7, 8, 9, 10, 64, 1_000, bytes.len()] {
            let mut meter = FrameMeter::new(now);
            bytes.chunks(part).for_each(|part| meter.receive(part, || now).unwrap());
            let left = CONTROL_FRAMES + 100 * CONTROL_FRAMES_PER_REQUEST - 300;
            assert_eq!(meter.left, left, "{part}");
        }
    }

    #[test]
    fn other_protocols_are_not_counted() {
        let now = Instant::now();
        let mut meter = FrameMeter::new(now);
        meter.receive(b"PRI ", || now).unwrap();
        for _ in 0..2 * CONTROL_FRAMES {
            meter.receive(&frame(WINDOW_UPDATE, 4), || now).unwrap();
        }
        assert_eq!(meter.left, CONTROL_FRAMES);
    }
}
