//! Reads lines of bounded length.

use std::io::{self, Read};

use super::LINE_MAX;

/// The number of bytes per read.
const CHUNK: usize = 256 * 1024;

/// One line, without its end (`\n` or `\r\n`).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line of at most [`LINE_MAX`] bytes.
    Text(&'a [u8]),
    /// The start of a longer line. The rest is skipped.
    TooLong(&'a [u8]),
}

/// Reads lines with one buffer, however long the lines are.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// The start of the unread part of the buffer. `end` is the end of this part.
    start: usize,
    end: usize,
    rest: Rest,
}

/// Whether the next bytes are the start of a line, or the rest of a line that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    NewLine,
    /// The next bytes are the rest of a line that is too long, and are skipped.
    Skipped,
}

impl<R: Read> Lines<R> {
    /// Creates a reader for the lines of `reader`.
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; CHUNK].into(), start: 0, end: 0, rest: Rest::NewLine }
    }

    /// Returns the next line, or `None` after the last one. The last line needs no line end.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.rest == Rest::Skipped {
            self.skip_to_line_end()?;
        }
        let Some(length) = self.find_line_end()? else {
            return Ok(None);
        };
        let line = self.start..self.start + length.of_line();
        match length {
            Length::Ended(bytes) => self.start += bytes + 1,
            Length::Incomplete(bytes) => self.start += bytes,
            Length::TooLong => {
                self.start = line.end;
                self.rest = Rest::Skipped;
                return Ok(Some(Line::TooLong(&self.buffer[line])));
            }
        }
        let text = &self.buffer[line];
        Ok(Some(Line::Text(text.strip_suffix(b"\r").unwrap_or(text))))
    }

    /// Fills the buffer until it contains the end of the next line, or until the line is too long.
    fn find_line_end(&mut self) -> io::Result<Option<Length>> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            let found = memchr::memchr(b'\n', &unread[searched..]).map(|at| searched + at);
            match found {
                Some(bytes) if bytes <= LINE_MAX => return Ok(Some(Length::Ended(bytes))),
                Some(_) => return Ok(Some(Length::TooLong)),
                None if unread.len() > LINE_MAX => return Ok(Some(Length::TooLong)),
                None => searched = unread.len(),
            }
            if self.fill()? == 0 {
                return Ok((searched > 0).then_some(Length::Incomplete(searched)));
            }
        }
    }

    fn skip_to_line_end(&mut self) -> io::Result<()> {
        self.rest = Rest::NewLine;
        loop {
            match memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                Some(at) => {
                    self.start += at + 1;
                    return Ok(());
                }
                None => self.start = self.end,
            }
            if self.fill()? == 0 {
                return Ok(());
            }
        }
    }

    /// Moves the unread part to the start of the buffer and reads more after it. Returns 0 at the
    /// end of the input.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(bytes);
                }
            }
        }
    }
}

/// The result of the search for the end of the next line.
#[derive(Clone, Copy, Debug)]
enum Length {
    /// The next line ends after this number of bytes.
    Ended(usize),
    /// The input ends after this number of bytes, without a line end.
    Incomplete(usize),
    /// The line end is beyond the longest line that is read.
    TooLong,
}

impl Length {
    fn of_line(self) -> usize {
        match self {
            Self::Ended(bytes) | Self::Incomplete(bytes) => bytes,
            Self::TooLong => LINE_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns a few bytes per read.
    struct OneByteReader<'a>(&'a [u8], usize);

    impl Read for OneByteReader<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(out.len());
            self.0.read(&mut out[..length])
        }
    }

    /// Returns every line's length, and its text if it was not too long.
    fn lines(text: &[u8], step: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(OneByteReader(text, step));
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(match line {
                Line::Text(text) => Some(text.to_vec()),
                Line::TooLong(start) => {
                    assert_eq!(start.len(), LINE_MAX);
                    None
                }
            });
        }
        found
    }

    #[test]
    fn line_ends_of_every_kind() {
        for step in [1, 2, 3, CHUNK] {
            let expected = ["a", "b", "", "c\rd", "e"].map(|line| Some(line.as_bytes().to_vec()));
            assert_eq!(lines(b"a\nb\r\n\nc\rd\ne", step), expected);
        }
        assert_eq!(lines(b"", 1), []);
        assert_eq!(lines(b"\n", 1), [Some(Vec::new())]);
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_is_read() {
        let longest = vec![b'x'; LINE_MAX];
        for (excess, step) in [(1, 4096), (CHUNK, 4096), (3 * CHUNK, CHUNK), (7, CHUNK)] {
            let mut text = vec![b'y'; LINE_MAX + excess];
            text.push(b'\n');
            text.extend_from_slice(&longest);
            text.extend_from_slice(b"\nz");
            assert_eq!(lines(&text, step), [None, Some(longest.clone()), Some(b"z".to_vec())]);
            assert_eq!(lines(&vec![b'y'; LINE_MAX + excess], step), [None]);
        }
    }
}
