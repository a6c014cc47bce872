use super::{
    Violation,
    section::{Section, SectionKind, SectionLimits, field, lines},
};

/// A state machine that reads a chunked body one element at a time: size line, data, line end,
/// trailers.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
    extension_bytes: usize,
}

/// The result of examining the next bytes of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChunkStep {
    /// The first bytes are valid, and the body continues after them. The number is the count of
    /// these bytes.
    Pass(usize),
    /// The first bytes are valid, and the body ends with them. The number is the count of these
    /// bytes.
    End(usize),
    /// The next element is incomplete, so no byte is passed on.
    Hold,
}

#[derive(Debug)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailers(Section),
}

/// The longest size line in bytes, with its extensions and its line end.
const MAX_SIZE_LINE_BYTES: usize = 512;
/// The most bytes of extensions in all chunks of a message. Extensions are discarded and do not
/// count for the body limit, so they need a limit of their own.
const MAX_EXTENSION_BYTES: usize = 16 * 1024;
/// The most hexadecimal digits of a size. A size of this many digits fits in 63 bits, so no server
/// reads it as a negative number.
const MAX_SIZE_DIGITS: usize = 15;

impl Chunks {
    pub(crate) fn new() -> Self {
        Self { state: State::Size, extension_bytes: 0 }
    }

    pub(crate) fn step(
        &mut self,
        bytes: &[u8],
        limits: &SectionLimits,
    ) -> Result<ChunkStep, Violation> {
        if bytes.is_empty() {
            return Ok(ChunkStep::Hold);
        }
        match &mut self.state {
            State::Size => self.size_line(bytes),
            State::Data(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    self.state = State::DataEnd;
                }
                Ok(ChunkStep::Pass(taken))
            }
            State::DataEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Ok(ChunkStep::Pass(2))
                }
                [b'\r'] => Ok(ChunkStep::Hold),
                _ => Err(Violation::ChunkEnd),
            },
            State::Trailers(section) => {
                let Some(length) = section.scan(bytes, limits)? else {
                    return Ok(ChunkStep::Hold);
                };
                check_trailers(&bytes[..length])?;
                Ok(ChunkStep::End(length))
            }
        }
    }

    fn size_line(&mut self, bytes: &[u8]) -> Result<ChunkStep, Violation> {
        if !bytes[0].is_ascii_hexdigit() {
            return Err(Violation::ChunkSize);
        }
        let window = &bytes[..bytes.len().min(MAX_SIZE_LINE_BYTES)];
        let Some(end) = memchr::memchr(b'\n', window) else {
            let full = window.len() == MAX_SIZE_LINE_BYTES;
            return if full { Err(Violation::ChunkSize) } else { Ok(ChunkStep::Hold) };
        };
        let line = window[..end].strip_suffix(b"\r").ok_or(Violation::BareLineFeed)?;
        let (size, extensions) = parse_size_line(line)?;
        self.extension_bytes += extensions;
        if self.extension_bytes > MAX_EXTENSION_BYTES {
            return Err(Violation::ChunkExtensions);
        }
        self.state = match size {
            0 => State::Trailers(Section::new(SectionKind::Trailers)),
            _ => State::Data(size),
        };
        Ok(ChunkStep::Pass(end + 1))
    }
}

/// Returns the size in a size line, and the number of bytes of the line's extensions. White space
/// before an extension is refused although the grammar tolerates it, because some parsers stop at
/// the white space and others skip it.
fn parse_size_line(line: &[u8]) -> Result<(u64, usize), Violation> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extensions) = line.split_at(digits);
    let sound_extensions = match extensions {
        [] => true,
        [b';', rest @ ..] => !rest.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t'),
        _ => false,
    };
    if digits == 0 || digits > MAX_SIZE_DIGITS || !sound_extensions {
        return Err(Violation::ChunkSize);
    }
    let size = size.iter().fold(0, |number, &digit| number * 16 + u64::from(hex_value(digit)));
    Ok((size, extensions.len()))
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn check_trailers(section: &[u8]) -> Result<(), Violation> {
    const FORBIDDEN: [&[u8]; 3] = [b"content-length", b"transfer-encoding", b"host"];
    for line in lines(section) {
        let (name, _) = field(line)?;
        if FORBIDDEN.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden)) {
            return Err(Violation::TrailerField);
        }
    }
    Ok(())
}
