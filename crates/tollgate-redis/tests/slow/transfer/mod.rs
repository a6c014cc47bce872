//! Cells that are read out of a server, and joined with what it keeps.

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
