//! Plans of simple requests. Such a plan has only charges that decide the request.
//!
//! A policy prepares each rule once: which conditions the rule has, and its charges with everything
//! except the subjects. A plan keeps the charges of the last few rules that decided, and a request
//! only replaces their subjects.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::net::IpAddr;

use super::dotted_decimal::dotted_decimal;
use super::matching::{Matched, RequestMatch};
use super::metered::Spare;
use super::path::NormalPath;
use super::plan::PlannedCharge;
use super::subject::{Dimension, ReadValue, encoded};
use super::{Ambiguity, ChargeOn, LimitRef, MatchMode, Policy, Rule, RuleMode};
use crate::attributes::RequestAttributes;
use crate::key::{KeyedHash, Subject, SubjectName, Value};

/// The charges of one request. The plan of the next request can reuse their memory.
#[derive(Clone, Debug, Default)]
pub struct PlainPlan {
    /// The charges of the last rules that decided requests. Each charge has the subject of the last
    /// request that its rule decided.
    prepared: Vec<PreparedCharges>,
    /// The index in `prepared` of the charges that the charges of a further rule replace.
    oldest: usize,
    /// The place of the charges of the current request.
    place: Place,
    /// The charges of a request whose rule has no prepared charges.
    planned: Vec<PlannedCharge>,
    spare: Spare,
}

/// The place of the charges of the current request in a [`PlainPlan`].
#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Planned,
    /// The charges are at this index in the list of prepared charges.
    Prepared(usize),
}

/// The charges of one rule, in the order of its limits.
#[derive(Clone, Debug)]
struct PreparedCharges {
    /// The form of the charges in the policy, which identifies the rule.
    form: Arc<[ChargeForm]>,
    planned: Vec<PlannedCharge>,
}

/// The largest number of rules whose charges a [`PlainPlan`] keeps. When a further rule decides a
/// request, its charges replace those of the rule that was added first.
const MAX_PREPARED: usize = 8;

/// What a policy prepares for the simple requests of one rule.
#[derive(Clone, Debug)]
pub(super) struct PlainRule {
    /// Whether the rule has only conditions on methods, paths and the presence of dimensions.
    has_few_conditions: bool,
    /// Whether the rule enforces its limits, and charges requests on arrival.
    is_enforced_on_arrival: bool,
    /// The charges of the rule, without their subjects. `None` if they cannot be prepared: if
    /// something else in them can depend on the request or the response, if the rule uses a limit
    /// twice, or if a limit is not enforced for all subjects or has a candidate.
    charges: Option<Arc<[ChargeForm]>>,
}

/// A charge of a rule, and the origin of its subject.
#[derive(Clone, Debug)]
struct ChargeForm {
    /// The charge, with a placeholder as its subject.
    charge: PlannedCharge,
    subject: SubjectForm,
    used: LimitRef,
}

/// The origin of the subject of a charge.
#[derive(Clone, Copy, Debug)]
enum SubjectForm {
    /// The subject is that of the rule's previous charge.
    Same,
    /// The subject consists of the dimension with this index and this name. The value of the
    /// dimension does not depend on the rule.
    Value(usize, SubjectName),
    /// The subject consists of the dimension with this name, which is the client's whole address.
    Address(SubjectName),
    /// The subject has no dimension, several dimensions, or one dimension with a value that depends
    /// on the rule. It is made without preparation.
    Other,
}

impl PlainPlan {
    /// Returns the charges that decide whether the request is admitted. Either all of them are
    /// counted or none.
    #[inline]
    #[must_use]
    pub fn charges(&self) -> &[PlannedCharge] {
        match self.place {
            Place::Planned => &self.planned,
            Place::Prepared(index) => &self.prepared[index].planned,
        }
    }

    fn clear(&mut self) {
        self.place = Place::Planned;
        remove_all(&mut self.planned, &mut self.spare);
    }

    /// Makes the charges of `form` the charges of the current request, and returns them. They still
    /// have the subjects of an earlier request, or placeholders.
    #[inline]
    fn prepare(&mut self, form: &Arc<[ChargeForm]>) -> &mut [PlannedCharge] {
        // The list keeps its forms alive, so no other form can have the same address.
        let known = self.prepared.iter().position(|known| Arc::ptr_eq(&known.form, form));
        let index = known.unwrap_or_else(|| self.add(form));
        self.place = Place::Prepared(index);
        &mut self.prepared[index].planned
    }

    /// Adds the charges of `form` to `prepared`. If `prepared` is full, replaces the oldest charges
    /// in it. Returns the index of the charges in `prepared`.
    #[cold]
    fn add(&mut self, form: &Arc<[ChargeForm]>) -> usize {
        if self.prepared.len() < MAX_PREPARED {
            let planned = form.iter().map(|one| one.charge.clone()).collect();
            self.prepared.push(PreparedCharges { form: Arc::clone(form), planned });
            return self.prepared.len() - 1;
        }
        let index = self.oldest;
        self.oldest = (index + 1) % MAX_PREPARED;
        let known = &mut self.prepared[index];
        known.form = Arc::clone(form);
        remove_all(&mut known.planned, &mut self.spare);
        for ChargeForm { charge, .. } in &**form {
            let mut estimates = self.spare.take();
            estimates.extend_from_slice(&charge.estimates);
            let PlannedCharge { limit, subject, cost, .. } = charge;
            let (limit, subject, cost) = (Arc::clone(limit), subject.clone(), *cost);
            known.planned.push(PlannedCharge {
                limit,
                subject,
                cost,
                estimates,
                conditions: Vec::new(),
            });
        }
        index
    }
}

/// Removes all charges from `planned`, and keeps the memory of their estimates in `spare`.
fn remove_all(planned: &mut Vec<PlannedCharge>, spare: &mut Spare) {
    for mut planned in planned.drain(..) {
        spare.give(core::mem::take(&mut planned.estimates));
    }
}

impl PlainRule {
    fn new(policy: &Policy, rule: &Rule) -> Self {
        Self {
            has_few_conditions: has_few_conditions(&rule.matches),
            is_enforced_on_arrival: rule.mode == RuleMode::Enforce
                && rule.charge == ChargeOn::Arrival,
            charges: charges(policy, rule),
        }
    }
}

/// Returns whether `matches` has only conditions on methods, paths and the presence of dimensions.
const fn has_few_conditions(matches: &RequestMatch) -> bool {
    let RequestMatch {
        methods: _,
        paths: _,
        hosts,
        networks,
        headers,
        query,
        cookies,
        has: _,
        lacks,
        when,
        any,
        not,
    } = matches;
    hosts.is_empty()
        && networks.is_empty()
        && headers.is_empty()
        && query.is_empty()
        && cookies.is_empty()
        && lacks.is_empty()
        && when.is_none()
        && any.is_empty()
        && not.is_empty()
}

/// Returns the forms of the charges of `rule`, as [`PlainRule::charges`] describes them.
fn charges(policy: &Policy, rule: &Rule) -> Option<Arc<[ChargeForm]>> {
    let limits = &rule.limits;
    let is_repeated = |(index, used): (usize, &LimitRef)| {
        limits[..index].iter().any(|other| other.limit == used.limit)
    };
    if policy.selects_limits()
        || rule.refund.is_some()
        || limits.iter().enumerate().any(is_repeated)
    {
        return None;
    }
    let form = |(index, used): (usize, &LimitRef)| {
        let binding = &policy.limits[used.limit];
        let limit = &binding.limit;
        if limit.counted().is_some() || !limit.is_enforced_alone() {
            return None;
        }
        let mut charge = PlannedCharge::new(Arc::clone(limit), Subject::default(), used.cost);
        if let Some(metered) = rule.metered.iter().find(|metered| metered.limit == used.limit) {
            let estimate = metered.fixed_estimate(used.cost)?;
            charge.cost = estimate.reserved;
            charge.estimates.push(estimate);
        }
        let before = index.checked_sub(1).map(|before| &policy.limits[limits[before].limit]);
        let subject = match (&*binding.per, before) {
            (per, Some(before)) if *before.per == *per => SubjectForm::Same,
            ([one], _) => of_one(*one, &policy.dimensions[*one]),
            _ => SubjectForm::Other,
        };
        Some(ChargeForm { charge, subject, used: *used })
    };
    limits.iter().enumerate().map(form).collect()
}

/// Returns the origin of a subject that consists of the single dimension `dimension`. `index` is
/// the index of the dimension in the policy.
fn of_one(index: usize, dimension: &Dimension) -> SubjectForm {
    match SubjectName::new(&dimension.name) {
        Some(name) if dimension.source.is_of_every_rule() => SubjectForm::Value(index, name),
        Some(name) if dimension.source.is_whole_address() => SubjectForm::Address(name),
        _ => SubjectForm::Other,
    }
}

/// A request, with the value that was read last from it. The rules of a policy usually depend on
/// one dimension, which is also the subject of their limits.
struct ReadRequest<'a> {
    policy: &'a Policy,
    attributes: &'a RequestAttributes<'a>,
    key: &'a dyn KeyedHash,
    /// The dimension that was read last, and its value.
    last: Option<(usize, ReadValue<'a>)>,
}

impl<'a> ReadRequest<'a> {
    /// Returns the value of the dimension with the index `dimension`, and reads it if it was not
    /// the last value that was read. The value must not depend on the rule.
    #[inline]
    fn value(&mut self, dimension: usize, matched: &Matched<'a>) -> &ReadValue<'a> {
        let Self { policy, attributes, last, .. } = self;
        if !matches!(last, Some((known, _)) if *known == dimension) {
            let source = &policy.dimensions[dimension].source;
            *last = Some((dimension, source.read(&policy.forwarding, attributes, matched)));
        }
        last.as_ref().map_or(&None, |(_, read)| read)
    }

    /// Returns whether the request has a value for the dimension with the index `dimension`.
    #[inline]
    fn has(&mut self, dimension: usize, matched: &Matched<'a>) -> bool {
        let source = &self.policy.dimensions[dimension].source;
        if source.is_of_every_rule() {
            return self.value(dimension, matched).is_some();
        }
        source.is_present(&self.policy.forwarding, self.attributes, matched)
    }

    /// Sets the subjects of `planned`, which are the charges of `form`.
    #[inline]
    fn set_subjects(
        &mut self,
        form: &[ChargeForm],
        planned: &mut [PlannedCharge],
        matched: &Matched<'a>,
    ) {
        let mut before: Option<&Subject> = None;
        for (form, charge) in form.iter().zip(planned) {
            match (&form.subject, before) {
                (SubjectForm::Same, Some(subject)) => charge.subject.clone_from(subject),
                _ => charge.subject = self.subject(form, matched),
            }
            before = Some(&charge.subject);
        }
    }

    /// Returns the subject of a charge of `form`.
    #[inline]
    fn subject(&mut self, form: &ChargeForm, matched: &Matched<'a>) -> Subject {
        let Self { policy, attributes, key, .. } = *self;
        let subject = match &form.subject {
            SubjectForm::Value(dimension, name) => {
                name.subject(encoded(self.value(*dimension, matched)), key)
            }
            SubjectForm::Address(name) => match policy.forwarding.client(attributes) {
                Some(IpAddr::V4(address)) => {
                    let (text, length) = dotted_decimal(address);
                    name.subject(Value::Clear(&text[..length]), key)
                }
                _ => None,
            },
            SubjectForm::Same | SubjectForm::Other => None,
        };
        subject.unwrap_or_else(|| policy.subject_of(&form.used, attributes, matched, key))
    }
}

impl Policy {
    /// Prepares the rules for [`plan_plain`](Self::plan_plain). Call this function after a change
    /// of the limits, or of the values that select their quotas.
    pub(super) fn with_plain_rules(mut self) -> Self {
        self.plain_rules = self.rules.iter().map(|rule| PlainRule::new(&self, rule)).collect();
        self
    }

    /// Plans the same charges as [`plan`](Self::plan) into `plain`, if the request is simple.
    /// Returns false for other requests. The charges in `plain` then have no meaning.
    ///
    /// A request is simple if all of these hold: at most one rule decides, the rule enforces its
    /// limits and charges on arrival, each of its limits is enforced for all subjects and has no
    /// candidate, and nothing in the request is ambiguous.
    ///
    /// Allocates nothing if `plain` has already planned a request of the same rule, as long as at
    /// most eight rules decide.
    #[must_use]
    pub fn plan_plain(
        &self,
        attributes: &RequestAttributes<'_>,
        key: &dyn KeyedHash,
        plain: &mut PlainPlan,
    ) -> bool {
        plain.place = Place::Planned;
        if self.match_mode != MatchMode::FirstMatch {
            plain.clear();
            return false;
        }
        let path = NormalPath::with_options(attributes.path, self.paths);
        let noted = Cell::new(self.ambiguity_of(&path));
        let mut request = ReadRequest { policy: self, attributes, key, last: None };
        for index in self.index.candidates(attributes.method, &path) {
            let (rule, plain_rule) = (&self.rules[index], &self.plain_rules[index]);
            let Some(matched) = self.matched_plain(rule, plain_rule, &mut request, &path, &noted)
            else {
                continue;
            };
            if !plain_rule.is_enforced_on_arrival {
                return false;
            }
            if let Some(form) = &plain_rule.charges {
                let planned = plain.prepare(form);
                request.set_subjects(form, planned, &matched);
                return noted.get().is_none();
            }
            plain.clear();
            let PlainPlan { planned, spare, .. } = plain;
            self.add_charges(rule, &rule.limits, (attributes, &matched, key), planned, spare);
            let is_plain = |planned: &PlannedCharge| planned.limit.is_enforced_alone();
            return noted.get().is_none() && planned.iter().all(is_plain);
        }
        plain.clear();
        noted.get().is_none()
    }

    /// Returns the match of `rule`, which must be a candidate of the [index](Self::index) for the
    /// request, if the request meets its conditions.
    #[inline]
    fn matched_plain<'a>(
        &'a self,
        rule: &'a Rule,
        plain_rule: &PlainRule,
        request: &mut ReadRequest<'a>,
        path: &'a NormalPath<'a>,
        ambiguity: &'a Cell<Option<Ambiguity>>,
    ) -> Option<Matched<'a>> {
        if !plain_rule.has_few_conditions {
            return self.matched(rule, request.attributes, path, ambiguity).ok();
        }
        // The index compared the method already.
        let pattern = rule.matches.pattern(path)?;
        let matched = Matched { rule: &rule.name, pattern, path, ambiguity };
        for dimension in &rule.matches.has {
            if !request.has(*dimension, &matched) {
                return None;
            }
        }
        Some(matched)
    }
}
