use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate_conformance::check;

#[tokio::test]
async fn the_memory_store_is_a_store() {
    check(&Memory::default(), "memory").await;
}

#[tokio::test]
async fn a_store_of_one_shard_is_a_store() {
    check(&Memory::new(Bounds { max_entries: 2_000, max_bytes: 1 << 24 }), "small").await;
}
