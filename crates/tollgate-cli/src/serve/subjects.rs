//! The subjects that the admin listener lists, for limits with `reveal: true`.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate_backend::{Backend, ListCursor, ListFilter, ListedPage};
use tollgate_server::http::{Subjects, SubjectsError, SubjectsPage, SubjectsRequest};

/// Returns the subjects that the store of `limiter` has in clear text.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>) -> Subjects {
    Subjects::new(move |query| {
        let limiter = Arc::clone(&limiter);
        async move { list(limiter.store(), &query).await }
    })
}

async fn list(
    store: &Backend,
    query: &SubjectsRequest,
) -> Result<Option<SubjectsPage>, SubjectsError> {
    let SubjectsRequest { limit, dimension, prefix, after } = query;
    let at = after.as_deref().map_or_else(|| Ok(ListCursor::default()), str::parse);
    let at = at.map_err(|_| SubjectsError::After)?;
    let filter = ListFilter { limit, dimension, prefix: prefix.as_bytes() };
    match store.subjects(filter, at).await {
        None => Ok(None),
        Some(Err(error)) => Err(SubjectsError::Store(error.to_string())),
        Some(Ok(ListedPage { subjects, next })) => {
            Ok(Some(SubjectsPage { subjects, next: next.map(|next| next.to_string()) }))
        }
    }
}
