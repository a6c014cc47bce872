//! What is told of each of the stores, beside which of them it is.

use tollgate_backend::BaseStore;

/// What is told of one of the stores, and which it is: see [`tollgate_backend::Backend::leaves`].
pub(super) type PerStore<T> = (&'static str, T);

/// All that `told` finds at each of `leaves`, and whose it is.
pub(super) fn of_each<'l, T, I: IntoIterator<Item = T>>(
    leaves: &[PerStore<BaseStore<'l>>],
    told: impl Fn(&BaseStore<'l>) -> I,
) -> Vec<PerStore<T>> {
    let of_one = |(side, leaf): &PerStore<BaseStore<'l>>| {
        let side = *side;
        told(leaf).into_iter().map(move |told| (side, told))
    };
    leaves.iter().flat_map(of_one).collect()
}
