//! Metrics that are reported separately for each of two stores, with a label for the store.

use tollgate_backend::Backend;

/// A value of one store, with the label of that store. See [`Backend::base_stores`].
pub(super) type PerStore<T> = (&'static str, T);

/// Calls `samples` for each of the stores `leaves`. Returns all results, each with the label of its
/// store.
pub(super) fn of_each<T, I: IntoIterator<Item = T>>(
    leaves: &[PerStore<&Backend>],
    samples: impl Fn(&Backend) -> I,
) -> Vec<PerStore<T>> {
    let of_one = |(side, leaf): &PerStore<&Backend>| {
        let side = *side;
        samples(leaf).into_iter().map(move |samples| (side, samples))
    };
    leaves.iter().flat_map(of_one).collect()
}
