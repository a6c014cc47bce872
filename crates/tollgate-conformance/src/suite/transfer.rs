//! Test cases for the transfer of states (cells) from one store to another.

use std::collections::BTreeMap;

use tollgate_core::{Algorithm, Cell, CellKey, CellTransfer, Limit, Subject};

use super::scene::{apply, charge, every, moment, subject};
use tollgate_core::{Admission, Charge, Operation, Store};

/// Runs the cases that every store with state transfer must pass, in addition to
/// [`check`](super::check). The two stores can have different types. The names of the subjects
/// start with `prefix`, which must not have been used before on either store.
///
/// # Panics
/// Panics at the first wrong answer.
pub async fn check_transfer<A: CellTransfer, B: CellTransfer>(from: &A, to: &B, prefix: &str) {
    for (name, algorithm) in every(5, 1_000) {
        let case = Case::new(prefix, name, algorithm);
        case.a_subject_goes_on_where_it_came_from(from, to).await;
        case.joining_twice_changes_nothing_more(from, to).await;
        case.what_the_other_has_is_not_forgotten(from, to).await;
    }
}

struct Case {
    limit: Limit,
    subjects: BTreeMap<&'static str, Subject>,
    name: &'static str,
}

impl Case {
    fn new(prefix: &str, name: &'static str, algorithm: Algorithm) -> Self {
        let of = |case| (case, subject(prefix, &format!("carried-{name}-{case}")));
        let subjects = ["moves", "twice", "both", "none"].map(of).into();
        Self { limit: Limit::new("suite", algorithm).expect("a name"), subjects, name }
    }

    async fn operation<S: Store>(
        &self,
        store: &S,
        who: &str,
        at: u64,
        operation: Operation,
    ) -> (Admission, u64, u64) {
        let charge = Charge { limit: &self.limit, subject: &self.subjects[who], operation };
        let reading = apply(store, at, &[charge]).await[0];
        (reading.admission, reading.used, reading.full_reset_at.as_millis())
    }

    fn cell_key(&self, who: &str) -> CellKey<'_> {
        CellKey { limit: &self.limit, subject: &self.subjects[who] }
    }

    async fn transfer<A: CellTransfer, B: CellTransfer>(
        &self,
        from: &A,
        to: &B,
        who: &str,
        at: u64,
    ) {
        let cell_keys = [self.cell_key(who), self.cell_key("none")];
        let cells = from.cells(moment(at), &cell_keys).await.expect("the store answers");
        assert_eq!(cells.len(), 2, "{}: one for each place", self.name);
        assert_eq!(cells[1], None, "{}: nobody was charged there", self.name);
        let found: Vec<(CellKey<'_>, Cell)> = cell_keys
            .into_iter()
            .zip(cells)
            .filter_map(|(cell_key, cell)| Some((cell_key, cell?)))
            .collect();
        assert_eq!(found.len(), 1, "{}: what is in force is found", self.name);
        to.join(moment(at), &found).await.expect("the store takes it");
    }

    async fn a_subject_goes_on_where_it_came_from<A: CellTransfer, B: CellTransfer>(
        &self,
        from: &A,
        to: &B,
    ) {
        self.operation(from, "moves", 0, charge(2, 1)).await;
        self.operation(from, "moves", 40, charge(2, 2)).await;
        self.transfer(from, to, "moves", 50).await;
        let there = self.operation(from, "moves", 50, charge(0, 3)).await;
        assert_eq!(self.operation(to, "moves", 50, charge(0, 3)).await, there, "{}", self.name);
        for operation in [charge(2, 4), charge(1, 5), charge(1, 6)] {
            let there = self.operation(from, "moves", 60, operation).await;
            assert_eq!(
                self.operation(to, "moves", 60, operation).await,
                there,
                "{}: {operation:?}",
                self.name
            );
        }
        // The window of the joined state must end at the original time.
        for at in [900, 1_000, 1_001, 1_040, 2_100] {
            let there = self.operation(from, "moves", at, charge(1, u128::from(at))).await;
            let here = self.operation(to, "moves", at, charge(1, u128::from(at))).await;
            assert_eq!(here, there, "{} at {at}", self.name);
        }
    }

    async fn joining_twice_changes_nothing_more<A: CellTransfer, B: CellTransfer>(
        &self,
        from: &A,
        to: &B,
    ) {
        self.operation(from, "twice", 0, charge(3, 1)).await;
        for at in [10, 11] {
            self.transfer(from, to, "twice", at).await;
        }
        let there = self.operation(from, "twice", 11, charge(0, 2)).await;
        assert_eq!(self.operation(to, "twice", 11, charge(0, 2)).await, there, "{}", self.name);
    }

    /// Checks that a subject that was already charged on the receiving store keeps its usage on
    /// that store.
    async fn what_the_other_has_is_not_forgotten<A: CellTransfer, B: CellTransfer>(
        &self,
        from: &A,
        to: &B,
    ) {
        self.operation(from, "both", 0, charge(2, 1)).await;
        self.transfer(from, to, "both", 1).await;
        let (_, used, _) = self.operation(to, "both", 2, charge(3, 2)).await;
        self.transfer(from, to, "both", 2).await;
        let (admission, after, _) = self.operation(to, "both", 2, charge(1, 3)).await;
        assert_ne!(admission, Admission::Now, "{}: used up", self.name);
        assert_eq!((used, after), (5, 5), "{}", self.name);
    }
}
