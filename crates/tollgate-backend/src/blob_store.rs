//! The store of the documents that all nodes share, such as the overrides and the tenants: a shard
//! in Redis, a Redis Cluster, or a memcached server. While documents move, there are several.

use std::time::Duration;

use futures_util::future::join_all;
use tollgate::model::{CasOutcome, SharedBlob, StoreError, Subject};
use tollgate::overrides::TableVersion;
use tollgate_memcached::Memcached;
use tollgate_redis::{RedisCluster, RedisShard};
use tollgate_stores::rebalance::Phase;

use crate::backend::Backend;
use crate::shards::RedisServers;

/// The time to live of a document. It is the same for all documents and versions, so the newest
/// version, which may be empty, outlives the older versions that a move left in other places.
pub(crate) const BLOB_TTL: Duration = Duration::from_secs(367 * 24 * 3_600);

/// The most attempts to replace the document of one place while other nodes replace it too.
const ATTEMPTS: usize = 8;

/// The store of the documents that all nodes share, such as the overrides and the tenants.
///
/// While subjects move to another shard map or to another store, the documents have several places.
/// Nodes with the policy from before the move use only the first place, and nodes with the policy
/// from after the move only the last place. Nodes with the policy of the move therefore
///
/// - use the version of a document with the most changes, and the version of the latest place if
///   two versions have as many changes;
/// - replace a document in all places, the first place first. Each replacement depends on the
///   version of that place, so no change of a node that uses fewer places is lost;
/// - copy each document to the places that lack it: see [`copy`](Self::copy).
///
/// While some places do not answer, the documents of the others are used, and no document can be
/// replaced. After the cutover of a shard map, when no node uses only the old map, an old place
/// that does not answer is ignored: the last place decides between two changes.
#[derive(Debug)]
pub(crate) struct BlobStore<'s> {
    /// The places of the documents, from the oldest to the newest. There is at least one.
    places: Vec<Place<'s>>,
    /// Whether no node uses only an old place, so old places that do not answer are ignored.
    is_cutover: bool,
}

/// A server or cluster that keeps documents.
#[derive(Clone, Copy, Debug)]
enum Place<'s> {
    Shard(&'s RedisShard),
    Cluster(&'s RedisCluster),
    Memcached(&'s Memcached),
    #[cfg(test)]
    Fake(&'s tests::FakePlace),
}

impl<'s> BlobStore<'s> {
    /// Returns the servers or clusters of `store` that keep the documents. The hash of the empty
    /// subject selects them, so every node selects the same ones. Returns `None` if no nodes share
    /// the store.
    pub(crate) fn of(store: &'s Backend) -> Option<Self> {
        let places = places(store);
        (!places.is_empty()).then(|| Self { places, is_cutover: is_cutover(store) })
    }

    /// Returns whether the documents have several places.
    pub(crate) fn is_moving(&self) -> bool {
        self.places.len() > 1
    }

    /// Returns the version of the document called `name`. Returns an empty version if no document
    /// has this name.
    pub(crate) async fn version(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let versions = self.each(|place| place.version(name)).await;
        newest(versions.into_iter().map(|(_, version)| version), |version| version)
    }

    /// Returns the document called `name`. Returns an empty document if no document has this name.
    pub(crate) async fn shared_blob(&self, name: &str) -> Result<SharedBlob, StoreError> {
        let documents = self.each(|place| place.shared_blob(name)).await;
        newest(documents.into_iter().map(|(_, document)| document), |document| &document.version)
    }

    /// Replaces the document called `name` by `document`, if the stored version is `before`. If
    /// the stored version is not `before`, nothing is changed, and the result is
    /// `CasOutcome::Stale`.
    ///
    /// If the documents have several places, an error or `CasOutcome::Stale` can also mean that
    /// `document` was stored in the first places. All nodes of the move read it there, and a caller
    /// that tries again starts from the version that counts.
    pub(crate) async fn replace(
        &self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
    ) -> Result<CasOutcome, StoreError> {
        if let [place] = self.places[..] {
            return place.replace(name, before, document).await;
        }
        let versions = self.each(|place| place.version(name)).await;
        if newest(versions.iter().map(|(_, version)| version.clone()), |version| version)? != before
        {
            return Ok(CasOutcome::Stale);
        }
        let mut each = all(versions)?.into_iter();
        let Some((first, version)) = each.next() else { return Ok(CasOutcome::Stale) };
        // Nodes that use only this place may have replaced the document meanwhile.
        let mut outcome = first.replace(name, &version, document).await?;
        for (place, version) in each {
            if outcome == CasOutcome::Stored {
                outcome = place.raise(name, version, document).await?;
            }
        }
        Ok(outcome)
    }

    /// Copies the newest version of the document called `name` to all places that have another
    /// version. Does nothing if there is only one place.
    pub(crate) async fn copy(&self, name: &str) -> Result<(), StoreError> {
        if !self.is_moving() {
            return Ok(());
        }
        let versions = all(self.each(|place| place.version(name)).await)?;
        if versions.iter().all(|(_, version)| *version == versions[0].1) {
            return Ok(());
        }
        // Without the document of one place, an older document could replace a newer one.
        let documents = all(self.each(|place| place.shared_blob(name)).await)?;
        let each = documents.iter().map(|(_, document)| Ok(document));
        let newest = newest(each, |document| &document.version)?;
        if newest.version.is_empty() {
            return Ok(());
        }
        for (place, document) in &documents {
            if document.version != newest.version {
                // If this write fails, another node was the first to write this document or a newer
                // one.
                place.raise(name, document.version.clone(), newest).await?;
            }
        }
        Ok(())
    }

    /// Calls `read` with each place concurrently, and returns the places with their results. After
    /// the cutover, omits old places that do not answer.
    async fn each<T, F>(
        &self,
        read: impl Fn(Place<'s>) -> F,
    ) -> Vec<(Place<'s>, Result<T, StoreError>)>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let places = || self.places.iter().copied();
        let mut each: Vec<_> = places().zip(join_all(places().map(read)).await).collect();
        let last = each.pop();
        if self.is_cutover {
            each.retain(|(_, result)| result.is_ok());
        }
        each.extend(last);
        each
    }
}

/// Returns the results of all places. Returns an error if a place did not answer.
fn all<P, T>(each: Vec<(P, Result<T, StoreError>)>) -> Result<Vec<(P, T)>, StoreError> {
    each.into_iter().map(|(place, result)| Ok((place, result?))).collect()
}

/// Returns the places of the documents in `store`, from the oldest to the newest.
fn places(store: &Backend) -> Vec<Place<'_>> {
    let nobody = Subject::default();
    match store {
        Backend::Memory(_) => Vec::new(),
        Backend::Redis(redis) => redis.shards().owners_of(&nobody).map(Place::of).collect(),
        Backend::Memcached(memcached) => vec![Place::Memcached(memcached.server_of(&nobody))],
        Backend::Rollout(moving) => [places(moving.from()), places(moving.to())].concat(),
        Backend::Shadow(compared) => places(compared.store()),
    }
}

/// Returns whether no node uses only an old place of the documents in `store`. In a rollout, such
/// nodes can start at any time.
fn is_cutover(store: &Backend) -> bool {
    match store {
        Backend::Redis(redis) => redis.shards().store().phase() == Phase::Cutover,
        Backend::Shadow(compared) => is_cutover(compared.store()),
        Backend::Memory(_) | Backend::Memcached(_) | Backend::Rollout(_) => false,
    }
}

/// Returns the newest of the documents that the places returned. Returns an error if no place
/// answered, or if those that answered have no document.
fn newest<T>(
    found: impl IntoIterator<Item = Result<T, StoreError>>,
    version: impl Fn(&T) -> &[u8],
) -> Result<T, StoreError> {
    let (mut newest, mut failure) = (None::<T>, None);
    for one in found {
        match one {
            Ok(one) => {
                let is_newest = |known: &T| changes(version(&one)) >= changes(version(known));
                if newest.as_ref().is_none_or(is_newest) {
                    newest = Some(one);
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    match (newest, failure) {
        (Some(newest), failure) if failure.is_none() || !version(&newest).is_empty() => Ok(newest),
        (_, failure) => Err(failure.unwrap_or(StoreError::Unavailable)),
    }
}

impl<'s> Place<'s> {
    fn of(servers: &'s RedisServers) -> Self {
        match servers {
            RedisServers::Shard(shard) => Self::Shard(shard),
            RedisServers::Cluster(cluster) => Self::Cluster(cluster),
        }
    }

    async fn version(self, name: &str) -> Result<Vec<u8>, StoreError> {
        match self {
            Self::Shard(shard) => shard.shared_blob_version(name).await,
            Self::Cluster(cluster) => cluster.shared_blob_version(name).await,
            // memcached can read an item only as a whole.
            Self::Memcached(server) => Ok(server.shared_blob(name).await?.version),
            #[cfg(test)]
            Self::Fake(place) => place.version(),
        }
    }

    async fn shared_blob(self, name: &str) -> Result<SharedBlob, StoreError> {
        match self {
            Self::Shard(shard) => shard.shared_blob(name).await,
            Self::Cluster(cluster) => cluster.shared_blob(name).await,
            Self::Memcached(server) => Ok(server.shared_blob(name).await?),
            #[cfg(test)]
            Self::Fake(place) => place.shared_blob(),
        }
    }

    /// Replaces the document called `name` by `document`, if the stored version is `before`.
    async fn replace(
        self,
        name: &str,
        before: &[u8],
        document: &SharedBlob,
    ) -> Result<CasOutcome, StoreError> {
        match self {
            Self::Shard(shard) => shard.replace_shared_blob(name, before, document, BLOB_TTL).await,
            Self::Cluster(cluster) => {
                cluster.replace_shared_blob(name, before, document, BLOB_TTL).await
            }
            Self::Memcached(server) => {
                Ok(server.replace_shared_blob(name, before, document, BLOB_TTL).await?)
            }
            #[cfg(test)]
            Self::Fake(place) => place.replace(before, document),
        }
    }

    /// Replaces the document called `name`, which has the version `version`, by `document`. If
    /// another node replaces the document at the same time by an older version than `document`,
    /// replaces this version too. Returns `CasOutcome::Stored` if the place has `document` then.
    async fn raise(
        self,
        name: &str,
        mut version: Vec<u8>,
        document: &SharedBlob,
    ) -> Result<CasOutcome, StoreError> {
        for _ in 0..ATTEMPTS {
            let replaced = self.replace(name, &version, document).await?;
            if replaced == CasOutcome::Stored {
                return Ok(CasOutcome::Stored);
            }
            version = self.version(name).await?;
            // Another node copied the document.
            if version == document.version {
                return Ok(CasOutcome::Stored);
            }
            if changes(&version) >= changes(&document.version) {
                break;
            }
        }
        Ok(CasOutcome::Stale)
    }
}

/// Returns the bytes by which the store represents `version`.
pub(crate) fn encoded(version: TableVersion) -> Vec<u8> {
    [version.changes.to_be_bytes(), version.drawn.to_be_bytes()].concat()
}

/// Returns whether `version`, the version of a document in the store, differs from `held`, the
/// version that this node has, and is not older. If two nodes made different changes to the same
/// version, the version in the store counts as newer.
pub(crate) fn is_newer(version: &[u8], held: TableVersion) -> bool {
    version != encoded(held) && changes(version) >= held.changes.max(1)
}

/// Returns the number of changes after which a document has this version. Returns 0 for an invalid
/// version.
fn changes(version: &[u8]) -> u64 {
    match version.split_first_chunk() {
        Some((changes, drawn)) if drawn.len() == 8 => u64::from_be_bytes(*changes),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A place in memory.
    #[derive(Debug, Default)]
    pub(super) struct FakePlace(Mutex<Fake>);

    #[derive(Debug, Default)]
    struct Fake {
        document: SharedBlob,
        is_down: bool,
        /// Whether versions can be read and documents cannot.
        fails_documents: bool,
    }

    impl FakePlace {
        fn with(document: &SharedBlob) -> Self {
            Self(Mutex::new(Fake { document: document.clone(), ..Fake::default() }))
        }

        pub(super) fn version(&self) -> Result<Vec<u8>, StoreError> {
            let fake = self.0.lock();
            if fake.is_down { Err(StoreError::TimedOut) } else { Ok(fake.document.version.clone()) }
        }

        pub(super) fn shared_blob(&self) -> Result<SharedBlob, StoreError> {
            let fake = self.0.lock();
            let fails = fake.is_down || fake.fails_documents;
            if fails { Err(StoreError::TimedOut) } else { Ok(fake.document.clone()) }
        }

        pub(super) fn replace(
            &self,
            before: &[u8],
            document: &SharedBlob,
        ) -> Result<CasOutcome, StoreError> {
            if self.version()? != before {
                return Ok(CasOutcome::Stale);
            }
            self.0.lock().document = document.clone();
            Ok(CasOutcome::Stored)
        }
    }

    fn document(changes: u64) -> SharedBlob {
        let version = encoded(TableVersion { changes, drawn: changes });
        SharedBlob { version, bytes: changes.to_be_bytes().to_vec() }
    }

    fn moving<'s>(old: &'s FakePlace, new: &'s FakePlace, is_cutover: bool) -> BlobStore<'s> {
        BlobStore { places: vec![Place::Fake(old), Place::Fake(new)], is_cutover }
    }

    /// The bug: if the old place reported its version, and then did not return its document, the
    /// older document of the new place replaced the newer one.
    #[tokio::test]
    async fn a_failed_read_copied_an_older_document_over_a_newer_one() {
        let (old, new) = (FakePlace::with(&document(5)), FakePlace::with(&document(4)));
        old.0.lock().fails_documents = true;
        for is_cutover in [false, true] {
            let copied = moving(&old, &new, is_cutover).copy("one").await;
            assert_eq!(copied.is_ok(), is_cutover);
            assert_eq!(old.0.lock().document, document(5));
        }
        old.0.lock().fails_documents = false;
        moving(&old, &new, false).copy("one").await.unwrap();
        assert_eq!(new.shared_blob(), Ok(document(5)));
    }

    /// The bug: after the cutover of a shard map, no document could be changed if a server of the
    /// old map was shut down.
    #[tokio::test]
    async fn an_old_place_that_was_shut_down_after_the_cutover_prevented_all_changes() {
        for known in [SharedBlob::default(), document(4)] {
            let (old, new) = (FakePlace::with(&known), FakePlace::with(&known));
            old.0.lock().is_down = true;
            let change = async |is_cutover| {
                moving(&old, &new, is_cutover).replace("one", &known.version, &document(5)).await
            };
            assert_eq!(change(false).await, Err(StoreError::TimedOut));
            assert_eq!(new.shared_blob(), Ok(known.clone()));
            assert_eq!(change(true).await, Ok(CasOutcome::Stored));
            assert_eq!(moving(&old, &new, true).version("one").await, Ok(document(5).version));
            assert_eq!(moving(&old, &new, true).copy("one").await, Ok(()));
            // The old place receives the change when it answers again.
            old.0.lock().is_down = false;
            moving(&old, &new, true).copy("one").await.unwrap();
            assert_eq!(old.shared_blob(), Ok(document(5)));
        }
    }

    /// Without the last place, two nodes could make different changes to the same version.
    #[tokio::test]
    async fn the_last_place_must_answer_after_the_cutover() {
        let places = [document(4), document(4)].map(|known| FakePlace::with(&known));
        let [old, new] = &places;
        new.0.lock().is_down = true;
        let blobs = moving(old, new, true);
        let changed = blobs.replace("one", &document(4).version, &document(5)).await;
        assert_eq!(changed, Err(StoreError::TimedOut));
        assert_eq!(old.shared_blob(), Ok(document(4)));
    }

    #[test]
    fn the_version_with_the_most_changes_counts_and_no_failure_reads_as_no_document() {
        let version = |changes, drawn| Ok(encoded(TableVersion { changes, drawn }));
        let (none, failed) = (Ok(Vec::new()), Err(StoreError::Unavailable));
        let newest = |found: &[Result<Vec<u8>, StoreError>]| {
            newest(found.to_vec(), |version: &Vec<u8>| version)
        };
        let old = version(7, 1);
        for (found, expected) in [
            ([old.clone(), none.clone()], &old),
            ([none.clone(), old.clone()], &old),
            ([version(6, 9), old.clone()], &old),
            ([old.clone(), version(6, 9)], &old),
            ([version(7, 9), old.clone()], &old),
            ([failed.clone(), old.clone()], &old),
            ([old.clone(), failed.clone()], &old),
            ([none.clone(), failed.clone()], &failed),
            ([failed.clone(), none.clone()], &failed),
            ([none.clone(), none.clone()], &none),
        ] {
            assert_eq!(newest(&found), *expected, "{found:?}");
        }
        assert_eq!(newest(std::slice::from_ref(&none)), none);
    }
}
