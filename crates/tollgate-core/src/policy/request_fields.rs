//! The header fields of requests that a policy reads.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

use super::{Attribute, Policy, RequestMatch, ReservationSource, SubjectSource};

impl Policy {
    /// Returns the names of the header fields that the policy reads from requests, in lower case:
    /// in subjects, in the conditions of rules, in expressions and in costs. The fields `Cookie`,
    /// `Host` and those of forwarding proxies are not in the set.
    ///
    /// A proxy must not forward such a field in another spelling, because the service could read
    /// another value than the limiter.
    #[must_use]
    pub fn request_fields(&self) -> BTreeSet<Box<str>> {
        let mut names = BTreeSet::new();
        for dimension in &self.dimensions {
            add_source(&dimension.source, &mut names);
        }
        for rule in &self.rules {
            add_conditions(&rule.matches, &mut names);
            let reserved = rule.metered.iter().filter_map(|metered| metered.reserve.as_ref());
            for amount in reserved {
                if let ReservationSource::Header { field } = &amount.source {
                    names.insert(field.clone());
                }
            }
        }
        names
    }
}

fn add_source(source: &SubjectSource, names: &mut BTreeSet<Box<str>>) {
    match source {
        SubjectSource::Credential { header } | SubjectSource::Header { header } => {
            names.insert(header.clone());
        }
        SubjectSource::FirstOf { dimensions } => {
            dimensions.iter().for_each(|one| add_source(&one.source, names));
        }
        SubjectSource::Claim(claim) => add_source(&claim.token, names),
        SubjectSource::Expression { text, .. } => {
            text.attributes(&mut |attribute| add_attribute(attribute, names));
        }
        _ => {}
    }
}

fn add_conditions(conditions: &RequestMatch, names: &mut BTreeSet<Box<str>>) {
    names.extend(conditions.headers.iter().map(|header| header.name.clone()));
    if let Some(when) = &conditions.when {
        when.condition.attributes(&mut |attribute| add_attribute(attribute, names));
    }
    for nested in conditions.any.iter().chain(&conditions.not) {
        add_conditions(nested, names);
    }
}

fn add_attribute(attribute: &Attribute, names: &mut BTreeSet<Box<str>>) {
    if let Attribute::Header(name) = attribute {
        names.insert(name.clone());
    }
}
