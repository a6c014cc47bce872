//! What is told of each of the stores, beside which of them it is.

use tollgate_backend::Leaf;

/// What is told of one of the stores, and which it is: see [`tollgate_backend::Backend::leaves`].
pub(super) type Sided<T> = (&'static str, T);

/// All that `told` finds at each of `leaves`, and whose it is.
pub(super) fn of_each<'l, T, I: IntoIterator<Item = T>>(
    leaves: &[Sided<Leaf<'l>>],
    told: impl Fn(&Leaf<'l>) -> I,
) -> Vec<Sided<T>> {
    let of_one = |(side, leaf): &Sided<Leaf<'l>>| {
        let side = *side;
        told(leaf).into_iter().map(move |told| (side, told))
    };
    leaves.iter().flat_map(of_one).collect()
}
