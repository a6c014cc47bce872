//! Reads the files to which a policy file refers, such as lists of networks and keys that verify
//! tokens.

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;
use tollgate_core::Policy;

use crate::decode::{Spanned, Text};
use crate::report::Report;

/// The maximum size in bytes of a policy file: 1 MiB. The same maximum applies to each file that a
/// policy file includes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The largest number of networks in all files of a policy together. So many networks take at most
/// 32 MB of memory in the policy, and twice as much while a reload replaces the policy.
pub const MAX_NETWORKS: usize = 1_000_000;

/// Reads the files to which a policy file refers, and counts the networks in them.
pub(crate) struct Files<'a> {
    pub(crate) source: FileSource<'a>,
    /// The number of networks that all files that are not read yet can contain together.
    pub(crate) networks_left: usize,
    hash: SipHasher13,
    is_any_read: bool,
}

/// The source of the content of the files to which a policy refers.
#[derive(Clone, Copy)]
pub(crate) enum FileSource<'a> {
    /// The files are read from the disk. Their paths are relative to this directory.
    Directory(&'a Path),
    /// No file is read. The content of the files is taken from this policy, which was loaded from
    /// the same files.
    Policy(&'a Policy),
    /// The policy must not refer to files. A reference to a file is reported as a mistake.
    Nowhere,
}

impl<'a> Files<'a> {
    pub(crate) fn new(source: FileSource<'a>) -> Self {
        let hash = SipHasher13::new();
        Self { source, networks_left: MAX_NETWORKS, hash, is_any_read: false }
    }

    /// Returns a hash of the content of all files that were read. Returns `None` if no file was
    /// read.
    pub(crate) fn content_hash(&self) -> Option<u64> {
        self.is_any_read.then(|| self.hash.finish())
    }

    /// Reads the file with the name `given`, which is relative to `directory`. Returns its path and
    /// its text. The file can have at most `max` bytes. Returns `None` after reporting why the file
    /// cannot be read.
    pub(crate) fn text(
        &mut self,
        directory: &Path,
        given: &Spanned<Text>,
        max: u64,
        report: &mut Report<'_>,
    ) -> Option<(PathBuf, String)> {
        let path = directory.join(&given.value.0);
        match read(&path, max) {
            Ok(text) => {
                self.hash.write(text.as_bytes());
                self.hash.write_u8(0xff);
                self.is_any_read = true;
                Some((path, text))
            }
            Err(error) => {
                let message = format_args!("cannot read {}: {error}", path.display());
                report.error(given.at, message, "the path is relative to the policy file");
                None
            }
        }
    }
}

fn read(path: &Path, max: u64) -> io::Result<String> {
    // Only regular files are opened, because opening a named pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        return Err(io::Error::other(format!("the file is larger than {max} bytes")));
    }
    Ok(text)
}
