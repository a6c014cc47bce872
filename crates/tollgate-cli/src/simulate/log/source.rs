//! The sources of logs: files and standard input, plain or gzip.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;

use super::error::LogError;

/// A log as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input, which the command line names as `-`.
    Stdin,
    /// A file, plain or gzip.
    File(PathBuf),
    /// A log that is part of the binary.
    Embedded(&'static [u8]),
    /// An uploaded log, plain or gzip.
    Sent(Bytes),
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
            Self::Embedded(_) => f.write_str("the built-in log"),
            Self::Sent(_) => f.write_str("the log"),
        }
    }
}

/// An open log, as a reader of its decompressed bytes.
pub(super) struct Source {
    /// The bytes of the log, decompressed.
    reader: Box<dyn Read + Send>,
    /// The size of the log in bytes before decompression, if it is known.
    pub(super) size: Option<u64>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Source {
    /// Opens a log. `read` counts the bytes that are read from it, before decompression.
    pub(super) fn open(input: &Input, read: &Arc<AtomicU64>) -> Result<Self, LogError> {
        let open_error = |source| LogError::Open { log: input.to_string(), source };
        let (raw, size): (Box<dyn Read + Send>, _) = match input {
            Input::Stdin => (Box::new(io::stdin()), None),
            Input::File(path) => {
                let file = File::open(path).map_err(open_error)?;
                let metadata = file.metadata().map_err(open_error)?;
                (Box::new(file), metadata.is_file().then_some(metadata.len()))
            }
            Input::Embedded(bytes) => (Box::new(*bytes), Some(bytes.len() as u64)),
            Input::Sent(bytes) => (Box::new(Cursor::new(bytes.clone())), Some(bytes.len() as u64)),
        };
        let counted = Counted { reader: raw, read: Arc::clone(read) };
        let reader = decompressed(counted).map_err(open_error)?;
        Ok(match input {
            Input::Sent(_) => Self { reader: Box::new(Bounded { reader, left: SENT_MAX }), size },
            _ => Self { reader, size },
        })
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reader.read(out)
    }
}

/// The first bytes of gzip data.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The number of bytes that the decompressor receives per call.
const GZIP_CHUNK: usize = 64 * 1024;

/// Decompresses data that starts with the gzip magic number. All gzip members are decompressed, one
/// after the other.
fn decompressed(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(GZIP_MAGIC.len());
    reader.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
    let gzip = start == GZIP_MAGIC;
    let whole = Cursor::new(start).chain(reader);
    if !gzip {
        return Ok(Box::new(whole));
    }
    Ok(Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(GZIP_CHUNK, whole))))
}

/// The most bytes of an uploaded log after decompression. A few bytes of gzip data can expand to
/// any size.
pub(crate) const SENT_MAX: u64 = 64 << 20;

/// A reader that fails if it would return more than the limit.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.read(out)?;
        let Some(left) = self.left.checked_sub(bytes as u64) else {
            let message = format!(
                "it has more than {} MiB after decompression: use `tollgate simulate`, which reads logs of any size",
                SENT_MAX >> 20
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        };
        self.left = left;
        Ok(bytes)
    }
}

/// A reader that counts bytes.
struct Counted<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.read(out)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decompressed(Cursor::new(bytes))?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn gzip_is_known_by_its_first_bytes_and_may_have_many_members() {
        assert_eq!(read([gzip(b"one\n"), gzip(b"two\n")].concat()).unwrap(), b"one\ntwo\n");
        for plain in ["", "\x1f", "a", "plain text"] {
            assert_eq!(read(plain.into()).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn a_log_that_was_sent_is_bounded_when_it_is_decompressed() {
        let line = [b'a'; 1 << 16];
        for (lines, is_read) in [(SENT_MAX >> 16, true), ((SENT_MAX >> 16) + 1, false)] {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            (0..lines).for_each(|_| encoder.write_all(&line).unwrap());
            let sent = Input::Sent(encoder.finish().unwrap().into());
            let mut source = Source::open(&sent, &Arc::default()).unwrap();
            assert_eq!(io::copy(&mut source, &mut io::sink()).is_ok(), is_read, "{lines}");
        }
    }

    #[test]
    fn damaged_gzip_is_an_error() {
        let whole = gzip(b"some text that is long enough");
        assert!(read(whole[..whole.len() - 6].to_vec()).is_err());
        let mut flipped = whole;
        let checksum = flipped.len() - 8;
        flipped[checksum] ^= 1;
        assert!(read(flipped).is_err());
    }
}
