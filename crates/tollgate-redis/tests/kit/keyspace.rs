//! The keys of a server.

use super::Server;

/// The approximate number of keys that one call of `SCAN` examines.
const SCAN_COUNT: usize = 1_000;

impl Server {
    /// Returns the names of all keys in the default database.
    pub async fn keys(&self) -> Vec<Vec<u8>> {
        let mut connection = self.connect().await;
        let (mut cursor, mut all) = (0, Vec::new());
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("COUNT").arg(SCAN_COUNT);
            let (next, names): (u64, Vec<Vec<u8>>) =
                scan.query_async(&mut connection).await.expect("a scan");
            all.extend(names);
            if next == 0 {
                // A scan may return a key twice.
                all.sort_unstable();
                all.dedup();
                return all;
            }
            cursor = next;
        }
    }

    /// Asserts that the server has keys, and that every key has an expiry.
    pub async fn assert_every_key_ends(&self) {
        let keys = self.keys().await;
        assert!(!keys.is_empty(), "there are no keys: was this the server that decided?");
        let mut connection = self.connect().await;
        for key in keys {
            let live: i64 =
                redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.expect("a PTTL");
            // PTTL returns -2 for a key that expired since the scan.
            assert_ne!(live, -1, "{} has no end", key.escape_ascii());
        }
    }
}
