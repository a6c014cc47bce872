//! The boundaries of requests on a client's byte stream, checked strictly before HTTP is parsed.
//!
//! HTTP libraries tolerate some errors: a length with a chunked coding, white space around a
//! coding, an unusual chunk. Behind a proxy, each of these errors can make the next server find
//! another end of the message, and read the remaining bytes as a request that was never limited
//! (request smuggling). Therefore a small state machine that reads only the framing examines the
//! stream first, and passes on only bytes that have exactly one interpretation.
//!
//! The check is written by hand, because no HTTP library for Rust offers such a check without
//! parsing the whole message. The proxy's tests contain 190 requests that attempt smuggling.
//!
//! The state machine uses no socket and no clock. The bytes of a stream alone determine its
//! results, and it stores only a few counters.

mod chunks;
mod head;
mod host;
mod section;
#[cfg(test)]
mod tests;
mod violation;

use chunks::{ChunkStep, Chunks};
use head::{After, BodyFraming};
pub use host::{is_host, same_host};
pub use section::SectionLimits;
use section::{Section, SectionKind};
pub use violation::Violation;

/// The first bytes of a connection that uses HTTP/2 with prior knowledge.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The state machine of one client connection.
#[derive(Debug)]
pub(crate) struct Framing {
    limits: SectionLimits,
    state: State,
    heads: u64,
}

/// The result of examining the available bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first bytes are valid and may be passed on. The number is the count of these bytes,
    /// which is at least one.
    Pass(usize),
    /// More bytes are needed before any can be passed on.
    Hold,
    /// Nothing may be passed on until the response to the last request shows whether the protocol
    /// switches.
    AwaitUpgradeAnswer,
    /// The next head is invalid. No part of it was passed on.
    RefuseHead(Violation),
    /// The current body is invalid. Its head was passed on already.
    RefuseBody(Violation),
}

#[derive(Debug)]
enum State {
    Preface,
    Head(Section, BlankLine),
    Length(u64, After),
    Chunked(Chunks, After),
    UpgradeAnswer,
    Opaque,
}

/// Whether one empty line before a request is still allowed. RFC 9112 requires servers to tolerate
/// one, because old clients send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlankLine {
    Allowed,
    Consumed,
}

impl Framing {
    pub(crate) fn new(limits: SectionLimits) -> Self {
        Self { limits, state: State::Preface, heads: 0 }
    }

    /// Examines the start of `bytes`, which has to begin where the last [`Step::Pass`] ended. After
    /// a `Pass`, call this function again with the remaining bytes. After a `Hold`, call it again
    /// with the same bytes and more.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Step {
        match &mut self.state {
            State::Preface => self.preface(bytes),
            State::Head(..) => self.head(bytes),
            State::UpgradeAnswer => Step::AwaitUpgradeAnswer,
            _ if bytes.is_empty() => Step::Hold,
            State::Length(left, after) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    self.state = State::following(*after);
                }
                Step::Pass(taken)
            }
            State::Chunked(chunks, after) => match chunks.step(bytes, &self.limits) {
                Ok(ChunkStep::Pass(taken)) => Step::Pass(taken),
                Ok(ChunkStep::End(taken)) => {
                    self.state = State::following(*after);
                    Step::Pass(taken)
                }
                Ok(ChunkStep::Hold) => Step::Hold,
                Err(violation) => Step::RefuseBody(violation),
            },
            State::Opaque => Step::Pass(bytes.len()),
        }
    }

    /// Treats the bytes after an upgrade request as the next request, because the response did not
    /// switch the protocol.
    pub(crate) fn decline_upgrade(&mut self) {
        if matches!(self.state, State::UpgradeAnswer) {
            self.state = State::next_message();
        }
    }

    /// Passes all later bytes on, because the response switched the protocol.
    pub(crate) fn accept_upgrade(&mut self) {
        if matches!(self.state, State::UpgradeAnswer) {
            self.state = State::Opaque;
        }
    }

    /// Returns the number of request heads that were passed on.
    pub(crate) fn heads(&self) -> u64 {
        self.heads
    }

    /// Returns whether the stream is between two heads or inside a head. Only in this state does
    /// the time limit for heads apply.
    pub(crate) fn expects_head(&self) -> bool {
        matches!(self.state, State::Preface | State::Head(..))
    }

    /// Returns whether the last message is complete and no byte of the next message has been
    /// examined. After a switch of the protocol, returns true.
    pub(crate) fn between_messages(&self) -> bool {
        match &self.state {
            State::Preface | State::Opaque => true,
            State::Head(section, _) => section.is_untouched(),
            _ => false,
        }
    }

    fn preface(&mut self, bytes: &[u8]) -> Step {
        if bytes.starts_with(HTTP2_PREFACE) {
            self.state = State::Opaque;
            return Step::Pass(bytes.len());
        }
        if HTTP2_PREFACE.starts_with(bytes) {
            return Step::Hold;
        }
        self.state = State::next_message();
        self.head(bytes)
    }

    fn head(&mut self, bytes: &[u8]) -> Step {
        let State::Head(section, blank_line) = &mut self.state else { return Step::Hold };
        let length = match section.scan(bytes, &self.limits) {
            Ok(Some(length)) => length,
            Ok(None) => return Step::Hold,
            Err(violation) => return Step::RefuseHead(violation),
        };
        let is_blank_line = length == 2;
        if is_blank_line && *blank_line == BlankLine::Consumed {
            return Step::RefuseHead(Violation::EmptyRequestLine);
        }
        if is_blank_line {
            self.state = State::Head(Section::new(SectionKind::Head), BlankLine::Consumed);
            return Step::Pass(length);
        }
        match head::parse_head(&bytes[..length], &self.limits) {
            Ok(head) => {
                self.heads += 1;
                self.state = match head.body {
                    BodyFraming::Length(0) => State::following(head.after),
                    BodyFraming::Length(length) => State::Length(length, head.after),
                    BodyFraming::Chunked => State::Chunked(Chunks::new(), head.after),
                };
                Step::Pass(length)
            }
            Err(violation) => Step::RefuseHead(violation),
        }
    }
}

impl State {
    fn following(after: After) -> Self {
        match after {
            After::Message => Self::next_message(),
            After::UpgradeAnswer => Self::UpgradeAnswer,
        }
    }

    fn next_message() -> Self {
        Self::Head(Section::new(SectionKind::Head), BlankLine::Allowed)
    }
}
