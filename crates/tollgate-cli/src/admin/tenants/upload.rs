//! The body of a request that is read from a file while the request is sent.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// The number of bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// The content of a file. A bar on a terminal shows how much of the file was sent.
pub(crate) struct FileBody {
    file: File,
    left: u64,
    bar: ProgressBar,
}

impl FileBody {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (left, file) = opened.map_err(|error| format!("{}: {error}", path.display()))?;
        // The bar is hidden unless standard error is a terminal.
        let bar = ProgressBar::new(left);
        if let Ok(style) = ProgressStyle::with_template("{bytes} of {total_bytes} sent {wide_bar}")
        {
            bar.set_style(style);
        }
        Ok(Self { file, left, bar })
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let wanted = usize::try_from(this.left).unwrap_or(PIECE).min(PIECE);
        let mut piece = vec![0; wanted];
        // The length of the file was announced when the file was opened, so exactly this number of
        // bytes is sent.
        let read = this.file.read_exact(&mut piece);
        this.left -= wanted as u64;
        this.bar.inc(wanted as u64);
        if this.left == 0 {
            this.bar.finish_and_clear();
        }
        Poll::Ready(Some(read.map(|()| Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
