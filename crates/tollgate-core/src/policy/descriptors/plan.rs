//! The plan for the descriptors of one request.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::matched::subject;
use super::tree::{Allowance, DescriptorRule, NodeMode};
use super::{Domain, Rate};
use crate::cost::Cost;
use crate::key::{KeyedHash, Subject};
use crate::limit::Limit;
use crate::policy::{PlannedCharge, Policy};

/// One descriptor of a request, with the units to charge.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a, V> {
    /// The keys and values, in the caller's order. Values come from clients and are not always
    /// text.
    pub entries: &'a [(&'a str, V)],
    /// The units to charge or refund.
    pub hits: Hits,
    /// The limit that the caller sent with the descriptor. It takes precedence over the limit in
    /// the tree.
    pub rate: Option<Rate>,
}

/// The units that a descriptor charges or refunds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// The descriptor charges this number of units. A cost of 0 only reads the limit.
    Charge(Cost),
    /// The descriptor refunds this number of units to its limit.
    Refund(Cost),
}

/// The plan for all descriptors of a request.
#[derive(Clone, Debug)]
pub struct DescriptorPlan<'p> {
    /// The domain, or `None` if the policy has no domain with that name. Requests to an unknown
    /// domain are not limited, even if the caller sends limits with them.
    pub domain: Option<&'p Domain>,
    /// The plan of each descriptor, in the order of the descriptors.
    pub descriptors: Vec<PlannedDescriptor<'p>>,
}

/// The plan of one descriptor.
#[derive(Clone, Debug)]
pub struct PlannedDescriptor<'p> {
    /// The outcome of matching the descriptor with the tree.
    pub outcome: DescriptorOutcome,
    /// What a refusal of this descriptor means for the whole request.
    pub mode: NodeMode,
    /// The quota group of a descriptor with [`NodeMode::Quota`], otherwise `None`.
    pub group: Option<QuotaGroup>,
    /// The rule of the node that the descriptor matched. `None` if no node matched, or if the
    /// caller sent a limit with the descriptor.
    pub rule: Option<&'p DescriptorRule>,
}

/// The outcome of matching one descriptor with the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorOutcome {
    /// The descriptor matches no node with a rule.
    Unmatched,
    /// The matching rule sets no limit, so the descriptor is admitted without a charge.
    Unlimited,
    /// Another descriptor of the request has a rule that replaces the rule of this descriptor.
    Replaced,
    /// The rule blocks the descriptor: the descriptor is refused, whatever its units.
    Blocked,
    /// The descriptor has a limit, on which its units are charged or refunded.
    Limited(Limited),
}

/// The charge of one descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The limit that is charged.
    pub limit: Arc<Limit>,
    /// The subject of the charge: the domain and the entries of the descriptor.
    pub subject: Subject,
    /// The units to charge or refund.
    pub hits: Hits,
}

/// The quota group of a descriptor. If one descriptor of a group is over its limit, the group is
/// exceeded. A request is refused if all of its groups are exceeded.
///
/// Descriptors with the same values of `backend_name` and `model_name_override` belong to one model
/// and form a group. Every other descriptor is a group of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaGroup(
    /// The index of the group's first descriptor.
    pub usize,
);

/// The charges of one store call, with at most one charge for each pair of a limit and a subject.
#[derive(Clone, Debug, Default)]
pub struct DescriptorCharges {
    /// The charges of the store call.
    pub planned: Vec<PlannedCharge>,
    /// For each descriptor of the request, the index of its charge, or `None` if it has no charge.
    pub of: Vec<Option<usize>>,
}

impl Policy {
    /// Returns the plan for the descriptors of a request to `domain`.
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

    /// Returns the plan of a descriptor for which the caller sent a limit, `rate`. This limit is
    /// always enforced, is never replaced, and has counters separate from those of the tree's
    /// limits.
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

    /// Returns the name that callers see: the name of the rule, or the name of its limit if the
    /// rule has no name. Returns `None` for a limit that the caller sent.
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
    /// Returns the charges of the descriptors for which `chosen` returns true. Refunds are not
    /// included.
    ///
    /// Equal descriptors become one charge with their total cost. If callers sent different rates
    /// for the same unit of time with equal descriptors, the smallest rate applies.
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

/// Marks the descriptors that are not counted because of [`replaces`](DescriptorRule::replaces):
/// sets their outcome to [`Replaced`](DescriptorOutcome::Replaced) if the rule of another
/// descriptor names their rule. A rule that is replaced itself still replaces other rules.
fn drop_replaced(planned: &mut [PlannedDescriptor<'_>]) {
    let rules = planned.iter().filter_map(|descriptor| descriptor.rule);
    let replaced: Vec<&str> = rules.flat_map(|rule| &rule.replaces).map(|name| &**name).collect();
    for descriptor in planned {
        let counts = matches!(
            descriptor.outcome,
            DescriptorOutcome::Limited(_) | DescriptorOutcome::Blocked
        );
        if counts && descriptor.name().is_some_and(|name| replaced.contains(&name)) {
            descriptor.outcome = DescriptorOutcome::Replaced;
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

/// The key of a quota group. Descriptors with equal keys belong to one group.
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
