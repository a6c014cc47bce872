//! Documents that nodes share: one item each, the version before the rest.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{DOCUMENT_DEADLINE, Document, Millis, Replaced, Timestamp};

use crate::error::MemcachedError;
use crate::expiry::expires;
use crate::link::{Connection, Unanswered};
use crate::steps::{unanswered, unexpected};
use crate::store::Memcached;
use crate::wire::{Command, Item, MAX_VALUE, Reply, Stored};

impl Memcached {
    /// The document of this name, an empty one where there is none. It is one item,
    /// `tg1:{NAME}:document`, which no limit's item is called, and goes as any item may: evicted,
    /// flushed, or with the server.
    ///
    /// # Errors
    /// [`MemcachedError`] if the server did not say within [`DOCUMENT_DEADLINE`].
    pub async fn document(&self, name: &str) -> Result<Document, MemcachedError> {
        let deadline = Instant::now() + DOCUMENT_DEADLINE;
        let connection = self.inner.steps.connection(deadline).await?;
        let stored = read(&connection, &key(name), deadline).await?;
        Ok(stored.map(|stored| document_in(&stored.value)).unwrap_or_default())
    }

    /// Puts `document` in the place of the one of version `before`, for `lasting`. Its version has at
    /// most 255 bytes, and all of it less than 1 MiB, of which the server keeps some for itself.
    ///
    /// # Errors
    /// [`MemcachedError`] if the server did not say within [`DOCUMENT_DEADLINE`], or has no room for
    /// it. Where the error [leaves it open](MemcachedError::proves_nothing_changed), it may have been
    /// replaced.
    pub async fn replace_document(
        &self,
        name: &str,
        before: &[u8],
        document: &Document,
        lasting: Duration,
    ) -> Result<Replaced, MemcachedError> {
        let deadline = Instant::now() + DOCUMENT_DEADLINE;
        let (steps, key) = (&self.inner.steps, &key(name));
        let connection = steps.connection(deadline).await?;
        let stored = read(&connection, key, deadline).await?;
        let is = stored.as_ref().map(|stored| document_in(&stored.value)).unwrap_or_default();
        if is.version != before {
            return Ok(Replaced::Stale);
        }
        let over_at =
            Timestamp::from_millis(u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX));
        let server_time = steps.server().time();
        let expires = expires(over_at, Timestamp::EPOCH, Millis::ZERO, server_time);
        let item = Item { value: written(document)?, flags: 0, expires };
        let command = match stored {
            Some(Stored { token, .. }) => Command::Replace { key, item, token },
            None => Command::Add { key, item },
        };
        // By the connection that told the token: it is good for no other.
        match connection.ask(&command, deadline).await {
            Ok(Reply::Done) => Ok(Replaced::Done),
            Ok(Reply::Outrun | Reply::Missing) | Err(Unanswered::Gone) => Ok(Replaced::Stale),
            Ok(other) => Err(unexpected(&other)),
            Err(reason) => Err(unanswered(reason)),
        }
    }
}

/// The version's length, the version, and what it holds.
fn written(document: &Document) -> Result<Vec<u8>, MemcachedError> {
    let length = u8::try_from(document.version.len()).map_err(|_| MemcachedError::Full)?;
    let value = [&[length], &document.version[..], &document.bytes].concat();
    // A larger one is not believed when it is read.
    if value.len() > MAX_VALUE { Err(MemcachedError::Full) } else { Ok(value) }
}

/// What is no document is none.
fn document_in(value: &[u8]) -> Document {
    let read = || {
        let (length, rest) = value.split_first()?;
        let (version, bytes) = rest.split_at_checked(usize::from(*length))?;
        Some(Document { version: version.to_vec(), bytes: bytes.to_vec() })
    };
    read().unwrap_or_default()
}

/// The item, if there is one.
async fn read(
    connection: &Connection,
    key: &[u8],
    deadline: Instant,
) -> Result<Option<Stored>, MemcachedError> {
    match connection.ask(&Command::Get { key }, deadline).await.map_err(unanswered)? {
        Reply::Value(stored) => Ok(Some(stored)),
        Reply::Missing => Ok(None),
        other => Err(unexpected(&other)),
    }
}

fn key(name: &str) -> Vec<u8> {
    format!("tg1:{{{name}}}:document").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_as_it_was_written_and_junk_is_none() {
        let document = Document { version: b"one".to_vec(), bytes: b"all of it".to_vec() };
        assert_eq!(document_in(&written(&document).unwrap()), document);
        for junk in [&b""[..], b"\x05abc"] {
            assert_eq!(document_in(junk), Document::default());
        }
        for (version, bytes) in [(256, 0), (1, MAX_VALUE)] {
            let long = Document { version: vec![0; version], bytes: vec![0; bytes] };
            assert_eq!(written(&long), Err(MemcachedError::Full));
        }
    }
}
