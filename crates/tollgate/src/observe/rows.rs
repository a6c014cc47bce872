//! One row of counters for each limit, found by the limit's address in memory.

use std::sync::Arc;

use tollgate_core::{Limit, Policy};

/// The most limits with a row of their own. Decisions of all other limits are counted together in
/// the row [`OTHER`].
pub const MAX_COUNTED_LIMITS: usize = 1_000;

/// The name of the row of all limits without a row of their own. A limit with the name `other` is
/// counted in this row, and gets no row of its own.
pub const OTHER: &str = "other";

/// The rows of all limits that were ever in force, and an index of the current policy's limits by
/// their addresses in memory.
#[derive(Debug)]
pub(super) struct Rows<R> {
    /// The current policy's limits, sorted by address. Each entry keeps its limit alive, so the
    /// limit's address is not reused.
    in_force: Vec<(Arc<Limit>, Arc<R>)>,
    /// The rows with their limits' names, in the order in which the limits came into force.
    rows: Vec<(Box<str>, Arc<R>)>,
    /// The rows sorted by their limits' names. Names come from policies, so no client can choose
    /// names that slow the lookup.
    by_name: Vec<(Box<str>, Arc<R>)>,
    other: Arc<R>,
    pools: Pools,
}

/// Whether the concurrency limits of the fleet's load shedding have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pools {
    /// The concurrency limits of load shedding have rows like all other limits.
    Counted,
    /// The concurrency limits of load shedding have no rows, because load shedding is not a
    /// decision by limits.
    Separate,
}

impl<R: Default> Rows<R> {
    /// Creates the rows of the limits of `policy`, up to [`MAX_COUNTED_LIMITS`], and [`OTHER`] for
    /// the rest.
    pub(super) fn of(policy: &Policy, pools: Pools) -> Self {
        let (other, in_force) = (Arc::default(), Vec::new());
        Self { in_force, rows: Vec::new(), by_name: Vec::new(), other, pools }.extended(policy)
    }

    /// Returns a copy of these rows with rows for the limits of `policy` added. In the copy, the
    /// limits of `policy` are in force.
    pub(super) fn extended(&self, policy: &Policy) -> Self {
        let (mut rows, mut by_name) = (self.rows.clone(), self.by_name.clone());
        let mut in_force = Vec::with_capacity(policy.limits().len());
        let pools = policy.shedding().fleet.map(|fleet| [fleet.pool, fleet.noncritical]);
        let pools = pools.filter(|_| self.pools == Pools::Separate);
        let is_pool = |index: &usize| pools.is_some_and(|pools| pools.contains(index));
        let limits = policy.limits().iter().enumerate().filter(|(index, _)| !is_pool(index));
        for limit in limits.map(|(_, limited)| &limited.limit) {
            let name = limit.name();
            let row = match search(&by_name, name) {
                Ok(index) => &by_name[index].1,
                Err(index) if name != OTHER && rows.len() < MAX_COUNTED_LIMITS => {
                    let row = Arc::<R>::default();
                    rows.push((name.into(), Arc::clone(&row)));
                    by_name.insert(index, (name.into(), row));
                    &by_name[index].1
                }
                Err(_) => &self.other,
            };
            in_force.push((Arc::clone(limit), Arc::clone(row)));
        }
        in_force.sort_unstable_by_key(|(limit, _)| Arc::as_ptr(limit).addr());
        Self { in_force, rows, by_name, other: Arc::clone(&self.other), pools: self.pools }
    }

    /// Returns the row of `limit`, or the row [`OTHER`] if the limit has no row of its own. If
    /// `limit` is not in the policy in force, the row is found by the name of `limit`. Such a limit
    /// comes from a request, from an override, or from a policy that was just replaced.
    pub(super) fn row(&self, limit: &Limit) -> &R {
        let address = std::ptr::from_ref(limit).addr();
        match self.in_force.binary_search_by_key(&address, |(limit, _)| Arc::as_ptr(limit).addr()) {
            Ok(index) => &self.in_force[index].1,
            Err(_) => match search(&self.by_name, limit.name()) {
                Ok(index) => &self.by_name[index].1,
                Err(_) => &self.other,
            },
        }
    }

    /// Returns every row with its limit's name, [`OTHER`] last.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &R)> {
        let rows = self.rows.iter().map(|(name, row)| (&**name, &**row));
        rows.chain([(OTHER, &*self.other)])
    }
}

/// Returns the index of `name` in the list sorted by name, or, as an error, the index at which to
/// insert `name`.
fn search<R>(by_name: &[(Box<str>, R)], name: &str) -> Result<usize, usize> {
    by_name.binary_search_by(|(other, _)| (**other).cmp(name))
}
