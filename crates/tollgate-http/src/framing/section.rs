use super::Violation;

/// The limits of a head or a trailer section.
#[derive(Debug, Clone, Copy)]
pub struct SectionLimits {
    /// The most bytes, with line ends and the final empty line.
    pub bytes: usize,
    /// The most field lines, without the request line.
    pub fields: usize,
    /// The most bytes of the request target.
    pub target_bytes: usize,
}

/// A scanner that finds the end of a section of CRLF lines while its bytes arrive. An empty line
/// ends the section.
///
/// The scanner examines each byte once. A section without an end is therefore refused at its first
/// invalid byte, and the time of a scan is proportional to the length of the section.
#[derive(Debug)]
pub(crate) struct Section {
    kind: SectionKind,
    scanned: usize,
    line_start: usize,
    lines: usize,
}

/// Whether a section is a head or a trailer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// A head, which consists of a request line and fields.
    Head,
    /// A trailer section, which consists of fields only.
    Trailers,
}

/// The largest number of bytes of a request line without its target: a method, two spaces and a
/// version.
const REQUEST_LINE_FRAME: usize = 64;

impl Section {
    pub(crate) fn new(kind: SectionKind) -> Self {
        Self { kind, scanned: 0, line_start: 0, lines: 0 }
    }

    /// Returns whether no byte of the section has been examined.
    pub(crate) fn is_untouched(&self) -> bool {
        self.scanned == 0
    }

    /// Examines the bytes that were added to `bytes` since the last call. `bytes` always contains
    /// the section from its first byte. Returns the length of the section including its final empty
    /// line, or `None` if that line has not arrived yet.
    pub(crate) fn scan(
        &mut self,
        bytes: &[u8],
        limits: &SectionLimits,
    ) -> Result<Option<usize>, Violation> {
        while self.scanned < bytes.len() {
            let line_ended = match self.sound_line(bytes, limits) {
                Some(end) => {
                    self.scanned = end;
                    true
                }
                None => self.scan_byte(bytes, limits)? == b'\n',
            };
            if line_ended {
                if self.scanned == self.line_start + 2 {
                    return Ok(Some(self.scanned));
                }
                self.end_line(limits)?;
            }
        }
        Ok(None)
    }

    /// Returns the end of the next line, or `None` if the line is not complete or not valid. The
    /// search is vectorized. A line for which this function returns `None` is examined byte by
    /// byte, so the first invalid byte is reported regardless of how the bytes arrived.
    fn sound_line(&self, bytes: &[u8], limits: &SectionLimits) -> Option<usize> {
        if self.scanned != self.line_start {
            return None;
        }
        let line = &bytes[self.line_start..];
        let end = first_control(line)?;
        if !line[end..].starts_with(b"\r\n") {
            return None;
        }
        let line_feed = self.line_start + end + 1;
        self.check_size(line_feed, limits).ok()?;
        Some(line_feed + 1)
    }

    fn scan_byte(&mut self, bytes: &[u8], limits: &SectionLimits) -> Result<u8, Violation> {
        let (at, byte) = (self.scanned, bytes[self.scanned]);
        let after_cr = at > self.line_start && bytes[at - 1] == b'\r';
        match byte {
            b'\n' if !after_cr => return Err(Violation::BareLineFeed),
            b'\n' => {}
            _ if after_cr => return Err(Violation::BareCarriageReturn),
            b'\r' => {}
            _ if is_control(byte) => return Err(Violation::ControlByte),
            _ => {}
        }
        self.check_size(at, limits)?;
        self.scanned = at + 1;
        Ok(byte)
    }

    fn check_size(&self, at: usize, limits: &SectionLimits) -> Result<(), Violation> {
        let in_request_line = self.kind == SectionKind::Head && self.lines == 0;
        if in_request_line && at >= limits.target_bytes.saturating_add(REQUEST_LINE_FRAME) {
            return Err(Violation::TargetTooLong);
        }
        if at >= limits.bytes {
            return Err(Violation::SectionTooLarge);
        }
        Ok(())
    }

    fn end_line(&mut self, limits: &SectionLimits) -> Result<(), Violation> {
        self.line_start = self.scanned;
        self.lines += 1;
        let fields = match self.kind {
            SectionKind::Head => self.lines - 1,
            SectionKind::Trailers => self.lines,
        };
        if fields > limits.fields {
            return Err(Violation::TooManyFields);
        }
        Ok(())
    }
}

/// The number of bytes that are examined at once, in one SIMD register.
const TOGETHER: usize = 16;

/// Returns the position of the first byte that is not allowed in a line, or `None` if all bytes are
/// allowed.
fn first_control(bytes: &[u8]) -> Option<usize> {
    // The results are combined without a branch, because only then does the compiler vectorize the
    // loop.
    let is_plain =
        |piece: &&[u8; TOGETHER]| !piece.iter().fold(false, |any, &byte| any | is_control(byte));
    let (pieces, _) = bytes.as_chunks::<TOGETHER>();
    let plain = pieces.iter().take_while(is_plain).count() * TOGETHER;
    let found = bytes[plain..].iter().position(|&byte| is_control(byte));
    found.map(|at| plain + at)
}

/// Returns whether `byte` is not allowed in a line.
fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// Returns the lines of a scanned section without their CRLF, and without the final empty line.
pub(crate) fn lines(mut section: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (line, rest) = section.split_at(memchr::memchr(b'\n', section)? + 1);
        section = rest;
        line.strip_suffix(b"\r\n").filter(|line| !line.is_empty())
    })
}

/// Splits a field line into its name and its raw value, including white space.
pub(crate) fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Violation::ObsoleteFold);
    }
    let colon = memchr::memchr(b':', line).ok_or(Violation::FieldName)?;
    let (name, value) = line.split_at(colon);
    if !is_token(name) {
        return Err(Violation::FieldName);
    }
    Ok((name, &value[1..]))
}

/// Returns whether `bytes` is a token of RFC 9110: not empty, with only letters, digits and a few
/// other characters.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| IS_TOKEN[usize::from(byte)])
}

/// A table with one entry for each byte: whether a token may contain the byte.
const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
            );
        byte += 1;
    }
    table
};
