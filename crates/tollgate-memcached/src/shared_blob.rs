//! Documents that nodes share. Each document is one item, which begins with the version of the
//! document.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{BLOB_DEADLINE, CasOutcome, Millis, SharedBlob, Timestamp};

use crate::error::MemcachedError;
use crate::expiry::expires;
use crate::link::{CallError, Connection};
use crate::steps::{unanswered, unexpected};
use crate::store::Memcached;
use crate::wire::{Command, Item, MAX_VALUE, Reply, Stored};

impl Memcached {
    /// Returns the document called `name`. Returns an empty document if no document has this name.
    ///
    /// The document is the item `tg1:{NAME}:document`. Items of limits never have such a name. Like
    /// any item, the document can be evicted, flushed, or lost in a restart of the server.
    ///
    /// # Errors
    /// [`MemcachedError`] if the server did not answer within [`BLOB_DEADLINE`].
    pub async fn shared_blob(&self, name: &str) -> Result<SharedBlob, MemcachedError> {
        let deadline = Instant::now() + BLOB_DEADLINE;
        let connection = self.inner.steps.connection(deadline).await?;
        let stored = read(&connection, &key(name), deadline).await?;
        Ok(stored.map(|stored| parse_blob(&stored.value)).unwrap_or_default())
    }

    /// Replaces the document called `name` by `document`, if the stored version is `before`, and
    /// returns whether the document was replaced. The new document expires after `lasting`.
    ///
    /// The version has at most 255 bytes. The whole document must have less than 1 MiB, because the
    /// server needs some bytes of this size for its own data.
    ///
    /// # Errors
    /// [`MemcachedError`] if the server did not answer within [`BLOB_DEADLINE`], or has no memory
    /// for the document. Unless the error [proves that nothing
    /// changed](MemcachedError::proves_nothing_changed), the document may have been replaced.
    pub async fn replace_shared_blob(
        &self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, MemcachedError> {
        let deadline = Instant::now() + BLOB_DEADLINE;
        let (steps, key) = (&self.inner.steps, &key(name));
        let connection = steps.connection(deadline).await?;
        let stored = read(&connection, key, deadline).await?;
        let is = stored.as_ref().map(|stored| parse_blob(&stored.value)).unwrap_or_default();
        if is.version != before {
            return Ok(CasOutcome::Stale);
        }
        let expires_at =
            Timestamp::from_millis(u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX));
        let server_time = steps.server().time();
        let expires = expires(expires_at, Timestamp::EPOCH, Millis::ZERO, server_time);
        let item = Item { value: written(document)?, flags: 0, expires };
        let command = match stored {
            Some(Stored { token, .. }) => Command::Replace { key, item, token },
            None => Command::Add { key, item },
        };
        // The command uses the connection on which the token was read, because the token is not
        // valid on other connections.
        match connection.call(&command, deadline).await {
            Ok(Reply::Done) => Ok(CasOutcome::Stored),
            Ok(Reply::Conflict | Reply::Missing) | Err(CallError::Closed) => Ok(CasOutcome::Stale),
            Ok(other) => Err(unexpected(&other)),
            Err(reason) => Err(unanswered(reason)),
        }
    }
}

/// Encodes a document: the length of the version, the version, and the content.
fn written(document: &SharedBlob) -> Result<Vec<u8>, MemcachedError> {
    let length = u8::try_from(document.version.len()).map_err(|_| MemcachedError::Full)?;
    let value = [&[length], &document.version[..], &document.bytes].concat();
    // A longer value could be written, but later reads would reject the value.
    if value.len() > MAX_VALUE { Err(MemcachedError::Full) } else { Ok(value) }
}

/// Decodes a document. Invalid bytes decode as an empty document.
fn parse_blob(value: &[u8]) -> SharedBlob {
    let read = || {
        let (length, rest) = value.split_first()?;
        let (version, bytes) = rest.split_at_checked(usize::from(*length))?;
        Some(SharedBlob { version: version.to_vec(), bytes: bytes.to_vec() })
    };
    read().unwrap_or_default()
}

/// Reads the item under `key`. Returns `None` if the item does not exist.
async fn read(
    connection: &Connection,
    key: &[u8],
    deadline: Instant,
) -> Result<Option<Stored>, MemcachedError> {
    match connection.call(&Command::Get { key }, deadline).await.map_err(unanswered)? {
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
        let document = SharedBlob { version: b"one".to_vec(), bytes: b"all of it".to_vec() };
        assert_eq!(parse_blob(&written(&document).unwrap()), document);
        for junk in [&b""[..], b"\x05abc"] {
            assert_eq!(parse_blob(junk), SharedBlob::default());
        }
        for (version, bytes) in [(256, 0), (1, MAX_VALUE)] {
            let long = SharedBlob { version: vec![0; version], bytes: vec![0; bytes] };
            assert_eq!(written(&long), Err(MemcachedError::Full));
        }
    }
}
