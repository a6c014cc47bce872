//! Cells that are exported from a server and joined into its keys.

mod cells;
mod hostile;
mod joins;
mod stores;

use crate::kit::Server;
use tollgate_conformance::PlainHash;
use tollgate_redis::{Keys, Redis, RuntimeChoice};

async fn store(server: &Server, choice: RuntimeChoice) -> Redis {
    Redis::new(server.connect().await, Keys::new(PlainHash), choice).await.expect("a step")
}
