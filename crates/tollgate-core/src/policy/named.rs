//! Charges by name: a caller that has no HTTP request specifies a limit and a subject.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::{fmt, slice};

use super::address::{network_name, plain};
use super::credential::credential;
use super::host::host_name;
use super::path::{PathCase, fold};
use super::plan::{add, use_first_quota};
use super::{Dimension, LimitBinding, OnFailure, PlannedCharge, Policy, RuleMode, SubjectSource};
use crate::cost::Cost;
use crate::key::{KeyedHash, Subject, Value};

/// A charge that a caller requests by the name of the limit, with the subject to charge.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name of the limit in the policy.
    pub limit: &'a str,
    /// The units to charge.
    pub cost: Cost,
    /// The subject: pairs of a dimension's name and its value, in any order. All dimensions of the
    /// limit must be present, except a dimension that only selects the quota. The value `None` has
    /// the same meaning as a value that is missing in a request.
    pub subject: &'a [(&'a str, Option<&'a str>)],
}

/// The plan of a call that names its limits, so that no rules select them: the charges, and the
/// fallback while the store does not answer.
#[derive(Clone, Debug, Default)]
pub struct NamedPlan {
    /// The charges, at most one for each pair of a limit and a subject.
    pub planned: Vec<PlannedCharge>,
    /// The strictest fallback (`on_failure`) of all rules that enforce the limits of the charges.
    /// If no rule enforces one of these limits, the policy's default counts for that limit.
    pub on_failure: OnFailure,
}

impl Policy {
    /// Converts `charges` by name to a plan. The plan uses the same counters as the plans of
    /// requests with the same values.
    ///
    /// # Errors
    /// [`NameError`] and the index of the invalid charge.
    pub fn plan_named<'a>(
        &self,
        charges: impl IntoIterator<Item = Named<'a>>,
        key: &dyn KeyedHash,
    ) -> Result<NamedPlan, (usize, NameError)> {
        let mut planned = Vec::new();
        // `strictest` does not begin with the default, because the default is stricter than
        // `allow`.
        let mut strictest = None;
        for (index, named) in charges.into_iter().enumerate() {
            let limit = self.limit_index(named.limit).map_err(|error| (index, error))?;
            let charge = self.by_name(limit, &named, key);
            let mut charge = charge.map_err(|error| (index, error))?;
            if self.selects_limits() {
                use_first_quota(&planned, &mut charge);
            }
            add(&mut planned, charge);
            strictest = strictest.max(Some(self.on_failure_of(limit)));
        }
        Ok(NamedPlan { planned, on_failure: strictest.unwrap_or_default() })
    }

    /// Returns whether the policy has quotas or windows that depend on a value of the request.
    pub(super) fn selects_limits(&self) -> bool {
        !self.quotas.is_empty() || !self.windows.is_empty() || self.tenants.is_some()
    }

    fn limit_index(&self, name: &str) -> Result<usize, NameError> {
        let is_it = |binding: &LimitBinding| binding.limit.name() == name;
        self.limits.iter().position(is_it).ok_or_else(|| NameError::Limit(name.into()))
    }

    fn by_name(
        &self,
        limit: usize,
        named: &Named<'_>,
        key: &dyn KeyedHash,
    ) -> Result<PlannedCharge, NameError> {
        let binding = &self.limits[limit];
        let dimensions = || binding.per.iter().filter_map(|index| self.dimensions.get(*index));
        let is_of_limit = |name: &str| self.uses_value(binding, name);
        if let Some((name, _)) = named.subject.iter().find(|(name, _)| !is_of_limit(name)) {
            return Err(NameError::Dimension((*name).into()));
        }
        let values = dimensions()
            .map(|dimension| dimension.given(named.subject, self.paths.case))
            .collect::<Result<Vec<_>, _>>()?;
        let pairs = dimensions()
            .zip(&values)
            .map(|(dimension, given)| (&*dimension.name, dimension.value(given.as_deref())));
        let subject = Subject::new(pairs, key);
        let limit = self.limit_by_name(limit, named.subject)?;
        Ok(PlannedCharge::new(limit, subject, named.cost))
    }

    fn on_failure_of(&self, limit: usize) -> OnFailure {
        let enforcing = self.rules.iter().filter(|rule| rule.mode == RuleMode::Enforce);
        let using = enforcing.filter(|rule| rule.limits.iter().any(|used| used.limit == limit));
        using.map(|rule| rule.on_failure).max().unwrap_or_default()
    }
}

impl Dimension {
    /// Returns a subject that consists of this dimension and `value`. The pair is encoded as in the
    /// subjects of requests with that value. `case` is the policy's setting for paths.
    ///
    /// # Errors
    /// [`NameError`] if no request can have that value.
    pub fn pair(
        &self,
        value: Option<&str>,
        case: PathCase,
        key: &dyn KeyedHash,
    ) -> Result<Subject, NameError> {
        let given = self.given(&[(&*self.name, value)], case)?;
        Ok(Subject::new([(&*self.name, self.value(given.as_deref()))], key))
    }

    /// Returns the form in which requests have `value`, such as `acme` for `Acme` in a path whose
    /// case is ignored. `case` is the policy's setting for paths. For a
    /// [`FirstOf`](SubjectSource::FirstOf), `value` does not include the name of a dimension, and is
    /// returned unchanged if requests have it in one of the dimensions.
    #[must_use]
    pub fn value_in_requests<'v>(&self, value: &'v str, case: PathCase) -> Cow<'v, str> {
        let parts = match &self.source {
            SubjectSource::FirstOf { dimensions } => dimensions.as_slice(),
            _ => slice::from_ref(self),
        };
        let form = |part: &Self| part.normal(value, case).unwrap_or_else(|_| value.into());
        let forms = parts.iter().map(form);
        forms
            .reduce(|one, other| if other == value { other } else { one })
            .unwrap_or_else(|| value.into())
    }

    fn value<'v>(&self, normal: Option<&'v str>) -> Value<'v> {
        match normal {
            None => Value::Absent,
            Some(text) if self.is_secret(text) => Value::Secret(text.as_bytes()),
            Some(text) => Value::Clear(text.as_bytes()),
        }
    }

    /// Returns whether `value`, in its normal form, is a secret.
    fn is_secret(&self, value: &str) -> bool {
        match self.source.first_of(value) {
            Some((one, _)) => one.source.is_secret(),
            None => self.source.is_secret(),
        }
    }

    /// Returns the value of this dimension in `subject`, in the normal form that values of requests
    /// have. Returns `Ok(None)` if `subject` states that the value is missing.
    fn given<'v>(
        &self,
        subject: &[(&str, Option<&'v str>)],
        case: PathCase,
    ) -> Result<Option<Cow<'v, str>>, NameError> {
        let given = subject.iter().find(|(name, _)| *name == &*self.name).map(|(_, value)| *value);
        if let SubjectSource::Constant { value } = &self.source {
            // The dimension has only this value, so callers can omit the value.
            return match given {
                None => Ok(Some(String::from(&**value).into())),
                Some(Some(given)) if *given == **value => Ok(Some(given.into())),
                Some(_) => Err(NameError::Constant(self.name.clone(), value.clone())),
            };
        }
        let Some(given) = given.ok_or_else(|| NameError::Missing(self.name.clone()))? else {
            return Ok(None);
        };
        let normal = self.normal(given, case)?;
        if normal.is_empty() { Err(NameError::Empty(self.name.clone())) } else { Ok(Some(normal)) }
    }

    /// Returns the value `given` in the normal form that values of requests have. `case` is the
    /// policy's setting for paths.
    pub(super) fn normal<'v>(
        &self,
        given: &'v str,
        case: PathCase,
    ) -> Result<Cow<'v, str>, NameError> {
        Ok(match &self.source {
            SubjectSource::PathParameter { .. } | SubjectSource::PathSegment { .. }
                if case == PathCase::Ignore =>
            {
                // The folded text of valid UTF-8 is valid UTF-8.
                String::from_utf8_lossy(&fold(given.as_bytes())).into_owned().into()
            }
            SubjectSource::Credential { header } => {
                let malformed = |_| NameError::Credential(self.name.clone());
                // The text is cut at an ASCII byte, so the rest is valid UTF-8.
                match credential(header, given.as_bytes()).map_err(malformed)? {
                    Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
                    Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
                }
            }
            SubjectSource::Method => given.to_ascii_uppercase().into(),
            SubjectSource::Header { .. } => given.trim_ascii().into(),
            SubjectSource::ClientAddress { ipv4_prefix, ipv6_prefix } => {
                let address: IpAddr =
                    given.parse().map_err(|_| NameError::Address(self.name.clone()))?;
                network_name(plain(address), *ipv4_prefix, *ipv6_prefix).into()
            }
            SubjectSource::Host => host_name(given).into(),
            SubjectSource::Query { .. } => given.trim_ascii().into(),
            SubjectSource::FirstOf { dimensions } => {
                let Some((one, rest)) = self.source.first_of(given) else {
                    let names: Vec<&str> = dimensions.iter().map(|one| &*one.name).collect();
                    return Err(NameError::FirstOf(self.name.clone(), names.join(", ").into()));
                };
                alloc::format!("{}:{}", one.name, one.normal(rest, case)?).into()
            }
            SubjectSource::Cookie { .. }
            | SubjectSource::PathParameter { .. }
            | SubjectSource::PathSegment { .. }
            | SubjectSource::Json { .. }
            | SubjectSource::TlsClient { .. }
            | SubjectSource::Claim(_)
            | SubjectSource::Expression { .. }
            | SubjectSource::Route
            | SubjectSource::Application { .. }
            | SubjectSource::Constant { .. } => given.into(),
        })
    }
}

impl SubjectSource {
    /// Splits a value of the form `name:value` into the dimension with the name and its value. A
    /// [`FirstOf`](Self::FirstOf) has values of this form. Returns `None` if `given` has another
    /// form, or if no dimension has the name.
    fn first_of<'v>(&self, given: &'v str) -> Option<(&Dimension, &'v str)> {
        let Self::FirstOf { dimensions } = self else { return None };
        let (name, value) = given.split_once(':')?;
        let one = dimensions.iter().find(|one| *one.name == *name)?;
        (!value.is_empty()).then_some((one, value))
    }
}

/// The reason why a charge by name is invalid in this policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The policy has no limit with this name.
    Limit(Box<str>),
    /// The limit does not count by this dimension.
    Dimension(Box<str>),
    /// The limit counts by this dimension, and no value was given.
    Missing(Box<str>),
    /// The value of this dimension is empty.
    Empty(Box<str>),
    /// The value of this dimension must be an IP address.
    Address(Box<str>),
    /// The value of this dimension cannot be interpreted as a single credential.
    Credential(Box<str>),
    /// The value of the dimension in the first field must begin with one of the names in the second
    /// field and a colon.
    FirstOf(Box<str>, Box<str>),
    /// The dimension in the first field always has the value in the second field, and the caller
    /// gave another value.
    Constant(Box<str>, Box<str>),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(name) => write!(f, "there is no limit {name:?}"),
            Self::Dimension(name) => write!(f, "the limit does not count by {name:?}"),
            Self::Missing(name) => write!(
                f,
                "the limit counts by {name:?}: send its value, or null for requests without one"
            ),
            Self::Empty(name) => {
                write!(f, "the value of {name:?} is empty: give null for requests without one")
            }
            Self::Address(name) => write!(
                f,
                "the value of {name:?} is not an IP address: use one such as 192.0.2.1 or \
                 2001:db8::1"
            ),
            Self::Credential(name) => write!(
                f,
                "the value of {name:?} must be one credential, with or without its scheme"
            ),
            Self::FirstOf(name, names) => {
                write!(f, "the value of {name:?} is NAME:VALUE with one of the names {names}")
            }
            Self::Constant(name, value) => write!(f, "{name:?} is always {value:?}"),
        }
    }
}

impl core::error::Error for NameError {}
