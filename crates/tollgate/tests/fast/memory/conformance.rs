use tollgate::core::algo::FixedWindow;
use tollgate::core::algo::fixed_window::Anchor;
use tollgate::core::{
    Algorithm, CellKey, CellTransfer, Charge, ChargeId, Cost, Limit, Millis, Operation, Store,
    StoreError, Subject, Timestamp, Value,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate_conformance::suite::check_transfer;
use tollgate_conformance::{PlainHash, check};

#[tokio::test]
async fn the_memory_store_is_a_store() {
    check(&Memory::default(), "memory").await;
}

#[tokio::test]
async fn a_store_of_one_shard_is_a_store() {
    check(&Memory::new(Bounds { max_entries: 2_000, max_bytes: 1 << 24 }), "small").await;
}

#[tokio::test]
async fn cells_are_carried_from_one_memory_store_to_another() {
    check_transfer(&Memory::default(), &Memory::default(), "carried").await;
}

#[tokio::test]
async fn a_store_without_room_takes_no_cell_in() {
    let (from, full) =
        (Memory::default(), Memory::new(Bounds { max_entries: 1, max_bytes: 1 << 12 }));
    let limit = limit();
    for name in 0..2_u8 {
        let subject = subject(name);
        let charge = |operation| Charge { limit: &limit, subject: &subject, operation };
        let take = charge(Operation::Charge { cost: Cost::ONE, id: ChargeId(name.into()) });
        from.apply(NOW, &[take]).await.unwrap();
        let place = CellKey { limit: &limit, subject: &subject };
        let cell = from.cells(NOW, &[place]).await.unwrap().remove(0).unwrap();
        let taken_in = full.join(NOW, &[(place, cell)]).await;
        // The first has used its quota up, and stays.
        assert_eq!(taken_in, if name == 0 { Ok(()) } else { Err(StoreError::Full) });
        let used =
            full.apply(NOW, &[charge(Operation::Peek { cost: Cost::ONE })]).await.unwrap()[0].used;
        assert_eq!(used, if name == 0 { 1 } else { 0 });
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limit() -> Limit {
    let window = FixedWindow::new(1, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

fn subject(name: u8) -> Subject {
    Subject::new([("user", Value::Clear(&[name]))], &PlainHash)
}
