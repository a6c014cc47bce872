//! The subjects of a limit: which requests share a counter.

use super::Quota;

/// The name of a subject, or several names: `"user"`, `["user", "ip"]`, or `Vec<String>`.
///
/// Tollgate implements the trait for these types. Other crates cannot implement the trait.
///
/// ```
/// use tollgate::Quota;
///
/// let per_user = Quota::per_second(10).per("user");
/// let per_user_and_address = Quota::per_second(10).per(["user", "ip"]);
/// # let _ = (per_user, per_user_and_address);
/// ```
pub trait SubjectNames: sealed::Sealed {
    #[doc(hidden)]
    fn into_names(self) -> Vec<Box<str>>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for String {}
    impl<const N: usize> Sealed for [&str; N] {}
    impl Sealed for Vec<String> {}
    impl Sealed for &[&str] {}
}

impl SubjectNames for &str {
    fn into_names(self) -> Vec<Box<str>> {
        vec![self.into()]
    }
}

impl SubjectNames for String {
    fn into_names(self) -> Vec<Box<str>> {
        vec![self.into()]
    }
}

impl<const N: usize> SubjectNames for [&str; N] {
    fn into_names(self) -> Vec<Box<str>> {
        self.map(Box::from).into()
    }
}

impl SubjectNames for Vec<String> {
    fn into_names(self) -> Vec<Box<str>> {
        self.into_iter().map(String::into_boxed_str).collect()
    }
}

impl SubjectNames for &[&str] {
    fn into_names(self) -> Vec<Box<str>> {
        self.iter().map(|name| Box::from(*name)).collect()
    }
}

/// A quota that is counted separately for each value of its subjects. Created by [`Quota::per`]. A
/// plain [`Quota`] converts to a `SubjectQuota` with one counter for all requests.
///
/// ```
/// use tollgate::{Quota, SubjectQuota};
///
/// let per_user: SubjectQuota = Quota::per_second(10).per("user");
/// let everybody_together: SubjectQuota = Quota::per_second(1_000).into();
/// # let _ = (per_user, everybody_together);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a quota does nothing until a limiter is built with it"]
pub struct SubjectQuota {
    pub(crate) quota: Quota,
    pub(crate) per: Vec<Box<str>>,
}

impl SubjectQuota {
    pub(super) fn new(quota: Quota, per: impl SubjectNames) -> Self {
        Self { quota, per: per.into_names() }
    }
}

impl From<Quota> for SubjectQuota {
    fn from(quota: Quota) -> Self {
        Self { quota, per: Vec::new() }
    }
}
