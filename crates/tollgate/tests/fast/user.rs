//! A request with a user in a header field.

use tollgate::model::Headers;

/// A request's only header field: its user.
pub(crate) struct User<'u>(pub(crate) &'u str);

impl Headers for User<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == "x-user" && index == 0).then_some(self.0.as_bytes())
    }
}
