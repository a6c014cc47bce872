//! What the descriptors of one request will be charged.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::matched::subject;
use super::node::{Allowance, DescriptorRule, NodeMode};
use super::{Domain, Rate};
use crate::cost::Cost;
use crate::key::{KeyedHash, Subject};
use crate::limit::Limit;
use crate::policy::{PlannedCharge, Policy};

/// One descriptor of a request.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a, V> {
    /// Keys and values, in the caller's order. Values are a client's, and not always text.
    pub entries: &'a [(&'a str, V)],
    /// What it counts.
    pub hits: Hits,
    /// A limit that it brings along, which goes before what the tree says.
    pub rate: Option<Rate>,
}

/// What a descriptor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// So much is taken. Cost 0 peeks.
    Charge(Cost),
    /// So much is given back.
    Refund(Cost),
}

/// What each descriptor of a request met, in their order.
#[derive(Clone, Debug)]
pub struct DescriptorPlan<'p> {
    /// The domain, or `None` where the policy has none of that name: then nothing is limited, also
    /// where the request brings limits along.
    pub domain: Option<&'p Domain>,
    /// One for each descriptor.
    pub descriptors: Vec<PlannedDescriptor<'p>>,
}

/// What one descriptor met.
#[derive(Clone, Debug)]
pub struct PlannedDescriptor<'p> {
    /// What is done with it.
    pub outcome: DescriptorOutcome,
    /// What its refusal means.
    pub mode: NodeMode,
    /// The group that it is in, in [`NodeMode::Quota`].
    pub group: Option<QuotaGroup>,
    /// The rule of its node: none where it met none, or brought its limit along.
    pub rule: Option<&'p DescriptorRule>,
}

/// What is done with one descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorOutcome {
    /// Nothing limits it.
    Unmatched,
    /// The tree says that nothing limits it.
    Unlimited,
    /// Another descriptor of the request met a rule that replaces its own.
    CasOutcome,
    /// It may nothing: over its limit whatever it counts.
    Blocked,
    /// It is counted.
    Limited(Limited),
}

/// What one descriptor is counted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The limit.
    pub limit: Arc<Limit>,
    /// Who is limited.
    pub subject: Subject,
    /// What it counts.
    pub hits: Hits,
}

/// Descriptors whose quotas stand and fall together: the group is over once any of them is. A
/// request is refused once all its groups are.
///
/// Those of one model are a group: descriptors with the same values of `backend_name` and
/// `model_name_override`. Any other descriptor is one by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaGroup(
    /// The index of its first descriptor.
    pub usize,
);

/// Takes that can be one charge: at most one a limit and subject.
#[derive(Clone, Debug, Default)]
pub struct DescriptorCharges {
    /// The takes.
    pub planned: Vec<PlannedCharge>,
    /// For each descriptor of the request which of them is its own, if one is.
    pub of: Vec<Option<usize>>,
}

impl Policy {
    /// What the descriptors of a request to `domain` met, and what they are charged.
    #[must_use]
    pub fn plan_descriptors<V: AsRef<[u8]>>(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_, V>],
        key: &dyn KeyedHash,
    ) -> DescriptorPlan<'_> {
        let domain = self.descriptors(domain);
        let mut planned: Vec<_> =
            descriptors.iter().map(|descriptor| self.met(domain, descriptor, key)).collect();
        drop_replaced(&mut planned);
        group_quotas(&mut planned, descriptors);
        DescriptorPlan { domain, descriptors: planned }
    }

    fn met<'p, V: AsRef<[u8]>>(
        &'p self,
        domain: Option<&'p Domain>,
        descriptor: &Descriptor<'_, V>,
        key: &dyn KeyedHash,
    ) -> PlannedDescriptor<'p> {
        let Some(domain) = domain else { return PlannedDescriptor::unmatched() };
        let (entries, hits) = (descriptor.entries, descriptor.hits);
        if let Some(rate) = descriptor.rate {
            return PlannedDescriptor::brought(rate, &domain.name, descriptor, key);
        }
        let Some(met) = domain.find_match(entries) else { return PlannedDescriptor::unmatched() };
        let outcome = match met.rule.allowance {
            Allowance::Unlimited => DescriptorOutcome::Unlimited,
            Allowance::Blocked => DescriptorOutcome::Blocked,
            Allowance::Limit(index) => {
                let limit = Arc::clone(&self.limits[index].limit);
                DescriptorOutcome::Limited(Limited {
                    limit,
                    subject: met.subject(&domain.name, entries, key),
                    hits,
                })
            }
        };
        PlannedDescriptor { outcome, mode: met.rule.mode, group: None, rule: Some(met.rule) }
    }
}

impl PlannedDescriptor<'_> {
    fn unmatched() -> Self {
        Self {
            outcome: DescriptorOutcome::Unmatched,
            mode: NodeMode::Enforce,
            group: None,
            rule: None,
        }
    }

    /// What limits a descriptor that brings its own limit: always enforced, never replaced, and
    /// counted apart from what the tree would have counted it on.
    fn brought<V: AsRef<[u8]>>(
        rate: Rate,
        domain: &str,
        descriptor: &Descriptor<'_, V>,
        key: &dyn KeyedHash,
    ) -> Self {
        let outcome = rate.limit().map_or(DescriptorOutcome::Blocked, |limit| {
            let entries = descriptor.entries.iter().map(|(key, value)| (*key, value.as_ref()));
            let subject = subject("override", domain, entries, key);
            DescriptorOutcome::Limited(Limited { limit, subject, hits: descriptor.hits })
        });
        Self { outcome, ..Self::unmatched() }
    }

    /// The name under which callers see what limits it: the rule's, else the limit's; of a limit
    /// that the request brought along none.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let rule = self.rule?;
        let limit = || match &self.outcome {
            DescriptorOutcome::Limited(limited) => Some(limited.limit.name()),
            _ => None,
        };
        rule.name.as_deref().or_else(limit)
    }
}

impl DescriptorPlan<'_> {
    /// What the descriptors that `chosen` picks take, put together as one charge. What they give
    /// back is not in it.
    ///
    /// Descriptors that say the same cost what both cost; where they brought different rates of one
    /// unit along, under the smaller.
    #[must_use]
    pub fn charges(&self, chosen: impl Fn(&PlannedDescriptor<'_>) -> bool) -> DescriptorCharges {
        let mut charges = DescriptorCharges::default();
        for descriptor in &self.descriptors {
            let taken = match &descriptor.outcome {
                DescriptorOutcome::Limited(limited) if chosen(descriptor) => match limited.hits {
                    Hits::Charge(cost) => Some(charges.add(limited, cost)),
                    Hits::Refund(_) => None,
                },
                _ => None,
            };
            charges.of.push(taken);
        }
        charges
    }
}

impl DescriptorCharges {
    fn add(&mut self, limited: &Limited, cost: Cost) -> usize {
        let same = |old: &PlannedCharge| {
            old.limit.name_digest() == limited.limit.name_digest() && old.subject == limited.subject
        };
        let Some(at) = self.planned.iter().position(same) else {
            let (limit, subject) = (Arc::clone(&limited.limit), limited.subject.clone());
            self.planned.push(PlannedCharge::new(limit, subject, cost));
            return self.planned.len() - 1;
        };
        let old = &mut self.planned[at];
        old.cost = old.cost.plus(cost);
        if limited.limit.capacity() < old.limit.capacity() {
            old.limit = Arc::clone(&limited.limit);
        }
        at
    }
}

/// Drops what another descriptor's rule replaces. One that is replaced still replaces.
fn drop_replaced(planned: &mut [PlannedDescriptor<'_>]) {
    let rules = planned.iter().filter_map(|descriptor| descriptor.rule);
    let replaced: Vec<&str> = rules.flat_map(|rule| &rule.replaces).map(|name| &**name).collect();
    for descriptor in planned {
        let counts = matches!(
            descriptor.outcome,
            DescriptorOutcome::Limited(_) | DescriptorOutcome::Blocked
        );
        if counts && descriptor.name().is_some_and(|name| replaced.contains(&name)) {
            descriptor.outcome = DescriptorOutcome::CasOutcome;
        }
    }
}

fn group_quotas<V: AsRef<[u8]>>(
    planned: &mut [PlannedDescriptor<'_>],
    descriptors: &[Descriptor<'_, V>],
) {
    for index in 0..planned.len() {
        let counts = |one: &PlannedDescriptor<'_>| {
            one.mode == NodeMode::Quota
                && matches!(one.outcome, DescriptorOutcome::Limited(_) | DescriptorOutcome::Blocked)
        };
        if counts(&planned[index]) {
            let own = QuotaKey::of(&descriptors[index]);
            let first = (0..index).find(|other| {
                counts(&planned[*other]) && QuotaKey::of(&descriptors[*other]) == own
            });
            planned[index].group = Some(QuotaGroup(first.unwrap_or(index)));
        }
    }
}

/// What descriptors of one quota group have in common.
#[derive(PartialEq, Eq)]
enum QuotaKey<'a> {
    Model { backend: &'a [u8], model: &'a [u8] },
    Descriptor(Vec<(&'a str, &'a [u8])>),
}

impl<'a> QuotaKey<'a> {
    fn of<V: AsRef<[u8]>>(descriptor: &'a Descriptor<'a, V>) -> Self {
        let entries = || descriptor.entries.iter().map(|(key, value)| (*key, value.as_ref()));
        let last = |name: &str| {
            let mut named = entries().rev().filter(|(key, _)| *key == name);
            named.next().map_or(&b""[..], |(_, value)| value)
        };
        let (backend, model) = (last("backend_name"), last("model_name_override"));
        if backend.is_empty() && model.is_empty() {
            return Self::Descriptor(entries().collect());
        }
        Self::Model { backend, model }
    }
}
