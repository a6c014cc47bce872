//! Documents that all Tollgate nodes share, such as the table of overrides. Each document has two
//! keys, for its version and its content.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};
use tokio::time::timeout;
use tollgate_core::StoreError;
use tollgate_core::shared_blob::{BLOB_DEADLINE, CasOutcome, SharedBlob};

use crate::link::{Link, Phase};
use crate::script::{STEP, is_denied, is_out_of_memory};

/// The keys of a document called `NAME`: `tg1:{NAME}:version` and `tg1:{NAME}:document`. The two
/// keys share a cluster slot. No key of a limit has such a name.
#[derive(Clone, Debug)]
pub(crate) struct BlobKeys {
    pub(crate) version: String,
    document: String,
}

impl BlobKeys {
    pub(crate) fn of(name: &str) -> Self {
        let key = |part| format!("tg1:{{{name}}}:{part}");
        Self { version: key("version"), document: key("document") }
    }

    /// Returns the version of the document without its content. The version is empty if the
    /// document does not exist, or if the server lost one of the two keys.
    pub(crate) async fn version(&self, link: &Link) -> Result<Vec<u8>, StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("MGET").arg(&self.version).cmd("EXISTS").arg(&self.document);
        let commands = async |connection: &mut MultiplexedConnection| {
            let (version, is_whole): ([Option<Vec<u8>>; 1], bool) =
                commands.query_async(connection).await?;
            let [version] = version;
            Ok(version.filter(|_| is_whole).unwrap_or_default())
        };
        within(link, commands).await
    }

    /// Returns the document with its version.
    pub(crate) async fn read(&self, link: &Link) -> Result<SharedBlob, StoreError> {
        let mut command = redis::cmd("MGET");
        command.arg(&self.version).arg(&self.document);
        let command = async |connection: &mut MultiplexedConnection| {
            let [version, bytes]: [Option<Vec<u8>>; 2] = command.query_async(connection).await?;
            // If the server evicted one of the two keys, the document does not exist.
            let both = version.zip(bytes);
            Ok(both.map(|(version, bytes)| SharedBlob { version, bytes }).unwrap_or_default())
        };
        within(link, command).await
    }

    /// Replaces the document by `document`, if its version is `before`. The new document expires
    /// after `lasting`. If the version is not `before`, nothing is changed, and
    /// [`CasOutcome::Stale`] is returned.
    pub(crate) async fn replace(
        &self,
        link: &Link,
        before: &[u8],
        document: &SharedBlob,
        lasting: Duration,
    ) -> Result<CasOutcome, StoreError> {
        let keys = [&*self.version, &*self.document];
        let lasting = u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX).to_string();
        let arguments = [before, &document.version, &document.bytes, lasting.as_bytes()];
        let command = async |connection: &mut MultiplexedConnection| {
            let is_replaced = STEP.replace(connection, keys, arguments).await?;
            Ok(if is_replaced { CasOutcome::Stored } else { CasOutcome::Stale })
        };
        within(link, command).await
    }
}

/// Sends the query `command` over the link's current connection, and waits for at most
/// [`BLOB_DEADLINE`].
async fn within<T>(
    link: &Link,
    command: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
) -> Result<T, StoreError> {
    let connection = match &*link.phases().borrow() {
        Phase::Up(connection) if link.permits(connection) => connection.handle(),
        Phase::Up(_) | Phase::Connecting | Phase::Down => return Err(StoreError::Unavailable),
    };
    let mut connection = connection;
    match timeout(BLOB_DEADLINE, command(&mut connection)).await {
        Err(_) => Err(StoreError::TimedOut),
        Ok(result) => result.map_err(|error| meaning(&error)),
    }
}

fn meaning(error: &RedisError) -> StoreError {
    match error.code() {
        _ if is_out_of_memory(error) => StoreError::Full,
        _ if is_denied(error) => StoreError::NotPermitted,
        Some("WRONGTYPE") => StoreError::Corrupt,
        _ => StoreError::Unavailable,
    }
}
