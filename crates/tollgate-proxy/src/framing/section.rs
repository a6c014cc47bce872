use super::Violation;

/// How large a head or a trailer section may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionLimits {
    /// Bytes, line ends and the closing empty line included.
    pub(crate) bytes: usize,
    /// Field lines; the request line is not one.
    pub(crate) fields: usize,
    /// Bytes of the request target.
    pub(crate) target_bytes: usize,
}

/// Finds the end of a section of CRLF lines that an empty line closes, as the bytes arrive.
///
/// It judges each byte once, so that a section that never ends is refused at its first wrong byte and costs time in
/// proportion to its length.
#[derive(Debug)]
pub(crate) struct Section {
    kind: SectionKind,
    scanned: usize,
    line_start: usize,
    lines: usize,
}

/// What the lines of a section are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    /// A request line, then fields.
    Head,
    /// Fields only.
    Trailers,
}

/// The longest request line beyond its target: a method, two spaces, a version.
const REQUEST_LINE_FRAME: usize = 64;

impl Section {
    pub(crate) fn new(kind: SectionKind) -> Self {
        Self { kind, scanned: 0, line_start: 0, lines: 0 }
    }

    /// Whether no byte of the section has been seen.
    pub(crate) fn is_untouched(&self) -> bool {
        self.scanned == 0
    }

    /// Looks at what `bytes`, the section from its first byte, holds beyond what was seen before. Returns the length
    /// of the section, its closing line included, once that is there.
    pub(crate) fn scan(
        &mut self,
        bytes: &[u8],
        limits: &SectionLimits,
    ) -> Result<Option<usize>, Violation> {
        while let Some(&byte) = bytes.get(self.scanned) {
            let at = self.scanned;
            let after_cr = at > self.line_start && bytes[at - 1] == b'\r';
            match byte {
                b'\n' if !after_cr => return Err(Violation::BareLineFeed),
                b'\n' => {}
                _ if after_cr => return Err(Violation::BareCarriageReturn),
                b'\r' | b'\t' => {}
                0x00..=0x1f | 0x7f => return Err(Violation::ControlByte),
                _ => {}
            }
            self.check_size(at, limits)?;
            self.scanned = at + 1;
            if byte == b'\n' {
                if at == self.line_start + 1 {
                    return Ok(Some(self.scanned));
                }
                self.end_line(limits)?;
            }
        }
        Ok(None)
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

/// The lines of a scanned section without their CRLF, the closing empty line left out.
pub(crate) fn lines(section: &[u8]) -> impl Iterator<Item = &[u8]> {
    section
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
}

/// Splits a field line into its name and its raw value, which still has its white space.
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

/// Whether `bytes` is a token of RFC 9110: not empty, and letters, digits and a few signs only.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
