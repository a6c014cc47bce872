//! Where each request on a client's byte stream begins and ends, judged strictly and before anything is parsed.
//!
//! An HTTP library forgives what it can: a length beside a chunked coding, white space around a coding, an odd chunk.
//! Behind a proxy each such kindness is a chance that the next server finds another end of the message, and takes the
//! rest for a request that nobody limited. So the stream is followed here first, by a small machine that knows only
//! framing, and only bytes that can be read in one way go on.
//!
//! The machine is pure: bytes in, verdicts out, no socket, no clock, and no memory beyond a few counters.

mod chunks;
mod head;
mod host;
mod section;
#[cfg(test)]
mod tests;
mod violation;

use chunks::{ChunkStep, Chunks};
use head::{After, BodyFraming};
pub(crate) use host::{is_host, same_host};
pub(crate) use section::SectionLimits;
use section::{Section, SectionKind};
pub(crate) use violation::Violation;

/// What a client sends first on a connection that speaks HTTP/2 from the start.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Follows the messages of one client connection.
#[derive(Debug)]
pub(crate) struct Framing {
    limits: SectionLimits,
    state: State,
    heads: u64,
}

/// What the machine made of the bytes at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// This many bytes, at least one, are sound and may go on.
    Pass(usize),
    /// The bytes at hand cannot be judged before more arrive.
    Hold,
    /// Nothing may go on before the answer to the last request shows whether the protocol changes.
    AwaitUpgradeAnswer,
    /// The next head is unsound; nothing of it went on.
    RefuseHead(Violation),
    /// The body under way is unsound; its head went on already.
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

/// One empty line before a request is tolerated, as RFC 9112 asks for the sake of old clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlankLine {
    Allowed,
    Spent,
}

impl Framing {
    pub(crate) fn new(limits: SectionLimits) -> Self {
        Self { limits, state: State::Preface, heads: 0 }
    }

    /// Judges the beginning of `bytes`, which starts where the last [`Step::Pass`] ended. To be called again with the
    /// rest after a `Pass`, and with the same bytes and more after a `Hold`.
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

    /// Continues with the next message: the answer kept the protocol.
    pub(crate) fn decline_upgrade(&mut self) {
        if matches!(self.state, State::UpgradeAnswer) {
            self.state = State::next_message();
        }
    }

    /// Lets every later byte through: the answer changed the protocol.
    pub(crate) fn accept_upgrade(&mut self) {
        if matches!(self.state, State::UpgradeAnswer) {
            self.state = State::Opaque;
        }
    }

    /// How many heads went on so far.
    pub(crate) fn heads(&self) -> u64 {
        self.heads
    }

    /// Whether the stream stands between or inside of heads, where a head's deadline runs.
    pub(crate) fn expects_head(&self) -> bool {
        matches!(self.state, State::Preface | State::Head(..))
    }

    /// Whether the last message is complete and nothing of a next one has been judged.
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
        if is_blank_line && *blank_line == BlankLine::Spent {
            return Step::RefuseHead(Violation::EmptyRequestLine);
        }
        if is_blank_line {
            self.state = State::Head(Section::new(SectionKind::Head), BlankLine::Spent);
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
