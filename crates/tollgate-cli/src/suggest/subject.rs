//! The dimension by which requests are counted, and the policy that finds the value of this
//! dimension in a request.

use std::fmt;
use std::str::FromStr;

use tollgate::HashKey;
use tollgate::model::policy::Ambiguity;
use tollgate::model::{Policy, Subject};

use crate::failure::Failure;
use crate::simulate::request::Request;

/// A dimension of requests, as in the flag `--per`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// The client's address.
    Address,
    /// The user of the log.
    User,
    /// The value of a header.
    Header(String),
}

/// The header that has the user of the log.
const USER_HEADER: &str = "remote-user";

impl Dimension {
    /// Returns the name of the dimension in the policy.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::User => "user",
            Self::Header(_) => "client",
        }
    }

    /// Returns the definition of the dimension in the policy.
    pub(super) fn definition(&self) -> String {
        match self {
            Self::Address => "{ client_address: {} }".to_owned(),
            Self::User => format!("{{ header: {USER_HEADER} }}"),
            Self::Header(name) => format!("{{ header: {name} }}"),
        }
    }

    /// Returns the condition of a rule for requests that have a value of this dimension.
    pub(super) fn condition(&self) -> String {
        match self {
            Self::Address => String::new(),
            Self::User | Self::Header(_) => format!("match: {{ has: {} }}, ", self.name()),
        }
    }

    /// Returns the word for several subjects.
    pub(super) const fn plural(&self) -> &'static str {
        match self {
            Self::Address => "addresses",
            Self::User => "users",
            Self::Header(_) => "clients",
        }
    }
}

impl FromStr for Dimension {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("header:")) {
            ("address", _) => Ok(Self::Address),
            ("user", _) => Ok(Self::User),
            (_, Some(name)) if is_header(name) => Ok(Self::Header(name.to_lowercase())),
            _ => Err("expected address, user or header:NAME".to_owned()),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("address"),
            Self::User => f.write_str("user"),
            Self::Header(name) => write!(f, "header:{name}"),
        }
    }
}

fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A length of time, as in the flag `--window` and in the policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The text of the window, such as `1m`.
    pub(super) text: String,
    /// The length in milliseconds.
    pub(super) millis: u64,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let policy = format!(
            "limits: {{ w: {{ quota: 1, window: {text} }} }}\nrules: [ {{ limits: w }} ]\n"
        );
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let loaded = is_plain.then(|| tollgate_policy::parse("--window", &policy).ok()).flatten();
        let is_duration = text.starts_with(|first: char| first.is_ascii_digit());
        match loaded.filter(|_| is_duration) {
            Some(loaded) => {
                let millis = loaded.policy.limits()[0].limit.window().get();
                Ok(Self { text: text.to_owned(), millis })
            }
            None => Err("expected a duration such as 10s, 1m, 1h or 1d".to_owned()),
        }
    }
}

/// A policy that finds the subject of a request.
#[derive(Debug)]
pub(super) struct Counting {
    policy: Policy,
    key: HashKey,
}

impl Counting {
    /// Creates the policy for subjects of `dimension`.
    pub(super) fn new(dimension: &Dimension) -> Result<Self, Failure> {
        let (name, definition) = (dimension.name(), dimension.definition());
        let condition = dimension.condition();
        let policy = format!(
            "subjects: {{ {name}: {definition} }}\nlimits: {{ all: {{ quota: 1, window: 1m, per: {name} }} }}\n\
             rules: [ {{ {condition}limits: all }} ]\n"
        );
        let loaded = tollgate_policy::parse("--per", &policy)?;
        Ok(Self { policy: loaded.policy, key: HashKey::random() })
    }

    /// Returns the subject of `request` in this dimension, if the request has a subject.
    ///
    /// # Errors
    /// The ambiguity of the request. The proxy refuses such a request without a charge.
    pub(super) fn subject(&self, request: &Request<'_>) -> Result<Option<Subject>, Ambiguity> {
        let plan = self.policy.plan(&request.facts(), &self.key);
        let subject = plan.enforced.into_iter().next().map(|charge| charge.subject);
        plan.ambiguity.map_or(Ok(subject), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_and_windows_are_read_as_flags_name_them() {
        assert_eq!("header:X-Api-Key".parse(), Ok(Dimension::Header("x-api-key".into())));
        for text in ["", "header:", "header:a b", "header:a}", "addresses", "cookie:a"] {
            assert!(text.parse::<Dimension>().is_err(), "{text}");
        }
        assert_eq!("1h30m".parse::<Window>().map(|window| window.millis), Ok(5_400_000));
        for text in ["", "1", "day", "0s", "1m }", "-1m", "1x", "month"] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
        for dimension in ["address", "user", "header:x-key"] {
            assert!(Counting::new(&dimension.parse().unwrap()).is_ok(), "{dimension}");
        }
    }
}
