//! The mapping between the statuses of a decision and the charges of its plan.

/// The position of a charge in its [`Plan`](tollgate_core::policy::Plan): one of the plan's two
/// lists, and an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanPosition {
    /// An index into [`Plan::enforced`](tollgate_core::policy::Plan::enforced).
    Enforced(usize),
    /// An index into [`Plan::shadowed`](tollgate_core::policy::Plan::shadowed).
    Shadowed(usize),
}

/// The position of a charge's status in a decision: one of the two evaluations, and an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evaluated {
    /// An index into the statuses of the decision's evaluation.
    Enforced(usize),
    /// An index into the statuses of the decision's shadow evaluation.
    Counted(usize),
}

/// The mapping between the statuses of a decision and the charges of its plan.
///
/// No table is needed if all charges of a plan are evaluated in the plan's order. In this case, the
/// statuses of the evaluation belong to the plan's enforced charges, and the statuses of the shadow
/// evaluation to its shadowed charges.
#[derive(Clone, Debug, Default)]
pub struct ChargePositions(Option<Box<Table>>);

/// The position in the plan of each evaluated charge. A list is `None` if its charges are evaluated
/// in the plan's order.
#[derive(Clone, Debug, Default)]
struct Table {
    enforced: Option<Vec<PlanPosition>>,
    counted: Option<Vec<PlanPosition>>,
}

impl ChargePositions {
    /// Creates the mapping for a plan with enforced charges that are only counted. `are_enforced`
    /// has one element for each enforced charge of the plan: true if the charge is enforced, and
    /// false if the charge is only counted. In the shadow evaluation, the charges that are only
    /// counted follow the shadowed charges of the plan. `shadowed` is the number of shadowed
    /// charges.
    pub(crate) fn split(are_enforced: &[bool], shadowed: usize) -> Self {
        let mut enforced = Vec::new();
        let mut counted: Vec<_> = (0..shadowed).map(PlanPosition::Shadowed).collect();
        for (index, is_enforced) in are_enforced.iter().enumerate() {
            let list = if *is_enforced { &mut enforced } else { &mut counted };
            list.push(PlanPosition::Enforced(index));
        }
        Self(Some(Box::new(Table { enforced: Some(enforced), counted: Some(counted) })))
    }

    /// Returns the position in the plan of the charge with the status at `evaluated`.
    pub(crate) fn of(&self, evaluated: Evaluated) -> PlanPosition {
        let table = self.0.as_deref();
        match evaluated {
            Evaluated::Enforced(index) => match table.and_then(|table| table.enforced.as_ref()) {
                Some(enforced) => enforced[index],
                None => PlanPosition::Enforced(index),
            },
            Evaluated::Counted(index) => match table.and_then(|table| table.counted.as_ref()) {
                Some(counted) => counted[index],
                None => PlanPosition::Shadowed(index),
            },
        }
    }

    /// Returns the position of the status of the charge at `position` of the plan. Returns `None`
    /// if the charge was not evaluated.
    pub(crate) fn find(&self, position: PlanPosition) -> Option<Evaluated> {
        let (enforced, counted) = match self.0.as_deref() {
            Some(table) => (table.enforced.as_ref(), table.counted.as_ref()),
            None => (None, None),
        };
        let is_it = |other: &PlanPosition| *other == position;
        let in_enforced = match (enforced, position) {
            (Some(list), _) => list.iter().position(is_it),
            (None, PlanPosition::Enforced(index)) => Some(index),
            (None, PlanPosition::Shadowed(_)) => None,
        };
        let in_counted = || match (counted, position) {
            (Some(list), _) => list.iter().position(is_it),
            (None, PlanPosition::Shadowed(index)) => Some(index),
            (None, PlanPosition::Enforced(_)) => None,
        };
        in_enforced.map(Evaluated::Enforced).or_else(|| in_counted().map(Evaluated::Counted))
    }

    /// Removes the charges that are not sent to the store from one of the two lists of the mapping.
    /// `list` is the variant of [`Evaluated`] for this list. `kept` has the indices of the charges
    /// that stay in the list.
    pub(crate) fn keep(&mut self, list: fn(usize) -> Evaluated, kept: &[usize]) {
        let positions = kept.iter().map(|index| self.of(list(*index))).collect();
        let table = self.0.get_or_insert_default();
        match list(0) {
            Evaluated::Enforced(_) => table.enforced = Some(positions),
            Evaluated::Counted(_) => table.counted = Some(positions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_is_evaluated_as_it_is_needs_no_table() {
        let positions = ChargePositions::default();
        for index in 0..3 {
            let (enforced, shadowed) =
                (PlanPosition::Enforced(index), PlanPosition::Shadowed(index));
            assert_eq!(positions.find(enforced), Some(Evaluated::Enforced(index)));
            assert_eq!(positions.find(shadowed), Some(Evaluated::Counted(index)));
            assert_eq!(positions.of(Evaluated::Enforced(index)), enforced);
            assert_eq!(positions.of(Evaluated::Counted(index)), shadowed);
        }
    }

    #[test]
    fn split_and_skipped_charges_keep_their_positions() {
        use PlanPosition::{Enforced, Shadowed};
        let mut positions = ChargePositions::split(&[true, false, true, true], 1);
        positions.keep(Evaluated::Enforced, &[0, 2]);
        let found = |position| positions.find(position);
        assert_eq!(found(Enforced(0)), Some(Evaluated::Enforced(0)));
        assert_eq!(found(Enforced(1)), Some(Evaluated::Counted(1)));
        assert_eq!(found(Enforced(2)), None);
        assert_eq!(found(Enforced(3)), Some(Evaluated::Enforced(1)));
        assert_eq!(found(Shadowed(0)), Some(Evaluated::Counted(0)));
        assert_eq!(positions.of(Evaluated::Enforced(1)), Enforced(3));
        let mut positions = ChargePositions::default();
        positions.keep(Evaluated::Counted, &[1]);
        assert_eq!(positions.find(Shadowed(0)), None);
        assert_eq!(positions.find(Enforced(0)), Some(Evaluated::Enforced(0)));
    }
}
