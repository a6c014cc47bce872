use tollgate::model::algo::FixedWindow;
use tollgate::model::algo::fixed_window::Anchor;
use tollgate::model::{
    Admission, Algorithm, CellKey, CellTransfer, Charge, ChargeId, Cost, Limit, Millis, Operation,
    Store, Subject, Timestamp, Value,
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
    check(&Memory::new(Bounds { max_entries: 4_095, max_bytes: 1 << 24 }), "small").await;
}

#[tokio::test]
async fn cells_are_carried_from_one_memory_store_to_another() {
    check_transfer(&Memory::default(), &Memory::default(), "carried").await;
}

#[tokio::test]
async fn a_store_without_room_counts_a_cell_that_comes_on_by_overflow() {
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
        full.join(NOW, &[(place, cell)]).await.unwrap();
        // The first subject has used its quota and keeps its entry. The second subject has used its
        // quota too, so the overflow counter refuses the second subject.
        let looked =
            full.apply(NOW, &[charge(Operation::Peek { cost: Cost::ONE })]).await.unwrap()[0];
        assert_eq!(looked.used, 1);
        assert_ne!(full.apply(NOW, &[take]).await.unwrap()[0].admission, Admission::Now);
        assert_eq!(full.stats().entries, 1);
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
