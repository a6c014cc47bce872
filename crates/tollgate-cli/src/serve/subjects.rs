//! The subjects that the admin listener lists, for limits with `reveal: true`.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate_backend::{Backend, ListCursor, ListFilter, ListedPage};
use tollgate_server::http::{Subjects, SubjectsAsked, SubjectsError, SubjectsPage};

/// Returns the subjects that the store of `limiter` has in clear text.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>) -> Subjects {
    Subjects::new(move |asked| {
        let limiter = Arc::clone(&limiter);
        async move { list(limiter.store(), &asked).await }
    })
}

async fn list(
    store: &Backend,
    asked: &SubjectsAsked,
) -> Result<Option<SubjectsPage>, SubjectsError> {
    let SubjectsAsked { limit, dimension, prefix, after } = asked;
    let at = after.as_deref().map_or_else(|| Ok(ListCursor::default()), str::parse);
    let at = at.map_err(|_| SubjectsError::After)?;
    let sought = ListFilter { limit, dimension, prefix: prefix.as_bytes() };
    match store.subjects(sought, at).await {
        None => Ok(None),
        Some(Err(error)) => Err(SubjectsError::Store(error.to_string())),
        Some(Ok(ListedPage { subjects, next })) => {
            Ok(Some(SubjectsPage { subjects, next: next.map(|next| next.to_string()) }))
        }
    }
}
