//! Replies in RESP2 or RESP3.

/// The protocol version of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    /// RESP2, which every client supports.
    #[default]
    Resp2,
    /// RESP3, which a client selects with `HELLO 3`. RESP3 adds maps and null.
    Resp3,
}

/// The most bytes of a client's input that an error repeats.
const MAX_ECHOED: usize = 128;

/// The encoded replies that are still to be sent to the client.
#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    protocol: Protocol,
}

impl Replies {
    /// Returns the bytes to send.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes the bytes that were sent. Keeps at most `capacity` bytes of memory for the next
    /// replies.
    pub(super) fn clear(&mut self, capacity: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(capacity);
    }

    /// Returns the protocol version of the next replies.
    pub(super) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Sets the protocol version of the next replies.
    pub(super) const fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Writes a status, such as `OK`.
    pub(super) fn status(&mut self, text: &'static str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error: its code and its text. Line breaks would end the reply, so they become
    /// spaces.
    pub(super) fn error(&mut self, text: impl AsRef<[u8]>) {
        self.bytes.push(b'-');
        let plain = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        self.bytes.extend(text.as_ref().iter().map(plain));
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes an integer.
    pub(super) fn integer(&mut self, number: i64) {
        self.bytes.push(b':');
        if number < 0 {
            self.bytes.push(b'-');
        }
        self.digits(number.unsigned_abs());
    }

    /// Writes a bulk string.
    pub(super) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.bytes.push(b'$');
        self.digits(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes null in place of a bulk string.
    pub(super) fn nothing(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes null in place of an array.
    pub(super) fn no_array(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.bytes.extend_from_slice(b"*-1\r\n"),
            Protocol::Resp3 => self.nothing(),
        }
    }

    /// Writes the head of an array of `count` replies.
    pub(super) fn array(&mut self, count: usize) {
        self.bytes.push(b'*');
        self.digits(count as u64);
    }

    /// Writes the head of a map of `count` pairs. In RESP2, a map is an array in which keys and
    /// values alternate.
    pub(super) fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(count * 2),
            Protocol::Resp3 => {
                self.bytes.push(b'%');
                self.digits(count as u64);
            }
        }
    }

    /// Writes the head of a set of `count` replies.
    pub(super) fn set(&mut self, count: usize) {
        self.bytes.push(match self.protocol {
            Protocol::Resp2 => b'*',
            Protocol::Resp3 => b'~',
        });
        self.digits(count as u64);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes `number` and the end of its line.
    #[inline]
    fn digits(&mut self, number: u64) {
        match number {
            0..=9 => self.bytes.extend_from_slice(&[b'0' + number as u8, b'\r', b'\n']),
            _ => self.many_digits(number),
        }
    }

    fn many_digits(&mut self, mut number: u64) {
        const LONGEST: usize = 22;
        let mut line = [0; LONGEST];
        line[LONGEST - 2..].copy_from_slice(b"\r\n");
        let mut start = LONGEST - 2;
        // Two digits are written at a time, because the division is the slow part.
        while number > 9 {
            start -= 2;
            let (tens, ones) = ((number % 100) / 10, number % 10);
            line[start..start + 2].copy_from_slice(&[b'0' + tens as u8, b'0' + ones as u8]);
            number /= 100;
        }
        if number > 0 {
            start -= 1;
            line[start] = b'0' + number as u8;
        }
        self.bytes.extend_from_slice(&line[start..]);
    }
}

/// Returns the part of a client's `word` that an error repeats: its start, without control
/// characters.
pub(super) fn echoed(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(&word[..word.len().min(MAX_ECHOED)]);
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies::default();
        write(&mut replies);
        replies.as_bytes().escape_ascii().to_string()
    }

    #[test]
    fn numbers_of_any_size_are_written() {
        for number in [0, 1, 9, 10, 99, 100, 1_009, -1, 1_000_001, i64::MAX, i64::MIN] {
            assert_eq!(written(|replies| replies.integer(number)), format!(":{number}\\r\\n"));
        }
    }

    #[test]
    fn nothing_a_client_sent_ends_an_error() {
        let error = written(|replies| replies.error("ERR a\r\n+OK\r\nb"));
        assert_eq!(error, "-ERR a  +OK  b\\r\\n");
        assert_eq!(echoed(&[b'a'; 500]).len(), MAX_ECHOED);
    }

    #[test]
    fn the_newer_version_knows_maps_and_nothing() {
        let write = |replies: &mut Replies| {
            replies.map(1);
            replies.bulk("a\r\n");
            replies.nothing();
            replies.set(0);
        };
        assert_eq!(written(write), "*2\\r\\n$3\\r\\na\\r\\n\\r\\n$-1\\r\\n*0\\r\\n");
        let newer = written(|replies| {
            replies.speak(Protocol::Resp3);
            write(replies);
        });
        assert_eq!(newer, "%1\\r\\n$3\\r\\na\\r\\n\\r\\n_\\r\\n~0\\r\\n");
    }
}
