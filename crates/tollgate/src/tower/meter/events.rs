//! A parser for server-sent events, which reads the data of a response as it arrives.
//!
//! The parser is written by hand, because the crate `eventsource-stream` collects each event in a
//! string without a bound. This parser stores no byte of the response.

/// The state of a parser for a stream of server-sent events (the WHATWG's `text/event-stream`). The
/// state contains no text of the stream.
#[derive(Debug, Default)]
pub(super) struct Events {
    state: State,
    /// Whether the last byte was a carriage return. If a line feed follows, both characters are one
    /// end of line.
    after_return: bool,
}

/// A part of the stream that the parser passes to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A part of the current event's data. The lines of the data are separated by line feeds.
    Data(&'a [u8]),
    /// The end of the current event.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The parser is at the start of the stream, where it ignores a byte order mark. The number is
    /// how many bytes of [`MARK`] have arrived.
    Mark(usize),
    /// The parser is in the name of a field. The name starts with the given number of bytes of
    /// [`DATA`], which are all bytes of the name that have arrived.
    Name(usize),
    /// The parser is directly after the colon that follows the name `data`, where it ignores one
    /// space.
    Colon,
    Value,
    /// The parser is in a line that contains no data, and skips the rest of the line.
    Other,
}

const DATA: &[u8] = b"data";

/// The byte order mark of UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

impl Default for State {
    fn default() -> Self {
        Self::Mark(0)
    }
}

impl Events {
    /// Parses `bytes`, the next bytes of the stream, and passes each part of the data to `piece`.
    pub(super) fn push<'a>(&mut self, bytes: &'a [u8], piece: &mut impl FnMut(Piece<'a>)) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let is_second = std::mem::take(&mut self.after_return) && byte == b'\n';
            if is_second {
                rest = after;
                continue;
            }
            if matches!(byte, b'\r' | b'\n') {
                self.after_return = byte == b'\r';
                self.end_line(piece);
                rest = after;
                continue;
            }
            rest = match self.state {
                State::Value | State::Other => self.rest_of_line(rest, piece),
                State::Colon => {
                    self.state = State::Value;
                    if byte == b' ' { after } else { rest }
                }
                State::Mark(read) if byte == MARK[read] => {
                    let is_last = read + 1 == MARK.len();
                    self.state = if is_last { State::Name(0) } else { State::Mark(read + 1) };
                    after
                }
                State::Mark(read) => {
                    self.state = if read == 0 { State::Name(0) } else { State::Other };
                    rest
                }
                State::Name(read) => {
                    self.state = match byte {
                        b':' if read == DATA.len() => State::Colon,
                        byte if DATA.get(read) == Some(&byte) => State::Name(read + 1),
                        _ => State::Other,
                    };
                    after
                }
            };
        }
    }

    /// Passes the rest of the current line in `bytes` to `piece`, if the line contains data.
    /// Returns the bytes after this rest of the line.
    fn rest_of_line<'a>(&self, bytes: &'a [u8], piece: &mut impl FnMut(Piece<'a>)) -> &'a [u8] {
        let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.state == State::Value {
            piece(Piece::Data(line));
        }
        rest
    }

    fn end_line<'a>(&mut self, piece: &mut impl FnMut(Piece<'a>)) {
        match std::mem::replace(&mut self.state, State::Name(0)) {
            State::Mark(0) | State::Name(0) => piece(Piece::End),
            State::Value => piece(Piece::Data(b"\n")),
            // A field without a colon, or with nothing after the colon, has an empty value.
            State::Colon | State::Mark(_) | State::Name(_) | State::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the data of each event of a stream that arrives in pieces of this many bytes.
    fn data(stream: &str, at_once: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut data = vec![Vec::new()];
        for bytes in stream.as_bytes().chunks(at_once) {
            events.push(bytes, &mut |piece| match piece {
                Piece::Data(bytes) => data.last_mut().unwrap().extend_from_slice(bytes),
                Piece::End => data.push(Vec::new()),
            });
        }
        data.into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect()
    }

    #[test]
    fn data_is_that_of_its_lines_however_they_end_and_wherever_they_are_cut() {
        for end in ["\n", "\r", "\r\n"] {
            let lines = [
                ": a comment",
                "event: usage",
                "data: one",
                "data:  two",
                "",
                "id: 7",
                "datax: no",
                "dat: no",
                "data",
                "data:",
                "",
                "data:[DONE]",
                "",
                "data: cut off",
            ];
            let stream = lines.join(end);
            for at_once in 1..stream.len() {
                let expected = ["one\n two\n", "", "[DONE]\n", "cut off"];
                assert_eq!(data(&stream, at_once), expected, "{at_once} {end:?}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_at_the_start_is_ignored() {
        for (stream, expected) in [
            ("\u{feff}data: one\n\ndata: two", ["one\n", "two"]),
            // A second byte order mark is a part of its line.
            ("\u{feff}\n\u{feff}data: one\ndata: two", ["", "two"]),
            // The first one or two bytes of these characters are the same as those of the byte
            // order mark.
            ("\u{fec0}data: one\ndata: two\n\n", ["two\n", ""]),
            ("\u{f000}data: one\ndata: two\n\n", ["two\n", ""]),
        ] {
            for at_once in 1..=stream.len() {
                assert_eq!(data(stream, at_once), expected, "{at_once} {stream:?}");
            }
        }
    }
}
