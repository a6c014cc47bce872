//! The policy: subjects, limits and rules, which map a request to its charges.
//!
//! This module contains the compiled policy. The crate `tollgate-policy` reads the file format.

pub mod address;
pub mod answers;
pub mod claim;
mod conditions;
mod credential;
pub mod descriptors;
mod dotted_decimal;
pub mod expression;
mod host;
mod index;
mod lifetime;
pub mod matching;
pub mod metered;
pub mod named;
pub mod networks;
pub mod outcome;
pub mod path;
pub mod pattern;
mod plain;
pub mod plan;
pub mod priority;
mod query;
pub mod queue;
pub mod quotas;
mod replaced;
mod request_body;
mod request_fields;
mod response_terms;
pub mod rule;
pub mod shedding;
pub mod subject;
pub mod tenants;
pub mod values;
pub mod windows;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use crate::ambiguity::Ambiguity;
pub use crate::json_pointer::{JsonPointer, PointerError};
pub use address::{AddressHeader, Forwarding, Network};
pub use answers::{HeaderProfile, ResponseSettings};
pub use claim::ClaimReader;
pub use descriptors::Domain;
pub use expression::{Attribute, Condition, Text};
pub use matching::{MAX_CONDITION_DEPTH, Mismatch, RequestMatch, WrittenCondition};
pub use metered::{Estimate, Meter, MeteredLimit, ReservationAmount, ReservationSource};
pub use named::{NameError, Named, NamedPlan};
pub use networks::{NetworkList, NetworkSet};
pub use path::{AmbiguousPaths, PathCase, PathOptions, PathParameters, PathPattern};
pub use plain::PlainPlan;
pub use plan::{Plan, PlannedCharge, RuleSwitch};
pub use priority::Priority;
pub use queue::Queue;
pub use quotas::QuotasByValue;
pub use response_terms::ResponseTerms;
pub use rule::{ChargeOn, LimitRef, OnFailure, Rule, RuleMode};
pub use shedding::Shedding;
pub use subject::{ClaimSource, Dimension, SubjectSource, UnreadBodies};
pub use tenants::{TenantBinding, TenantLookup};
pub use values::{ValueMatch, ValuePattern};
pub use windows::WindowsByValue;

use index::RuleIndex;
use plain::PlainRule;

use crate::limit::Limit;
use crate::time::Timestamp;

/// Which of the matching rules apply to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// Only the first matching rule applies.
    #[default]
    FirstMatch,
    /// Every matching rule applies. The charges of all these rules are decided together.
    AllMatches,
}

/// A limit, and the dimensions that make up its subjects.
#[derive(Clone, Debug)]
pub struct LimitBinding {
    /// The limit that has one counter for each subject.
    pub limit: Arc<Limit>,
    /// The dimensions of the subjects, as indices into [`Policy::dimensions`]. If the list is
    /// empty, all requests share one counter.
    pub per: Vec<usize>,
}

/// A validated policy: every index refers to an existing entry.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) limits: Vec<LimitBinding>,
    /// The quotas that depend on a value of the request, sorted by the index of their limit.
    pub(crate) quotas: Vec<QuotasByValue>,
    /// The windows that depend on a value of the request, sorted by the index of their limit.
    pub(crate) windows: Vec<WindowsByValue>,
    pub(crate) rules: Vec<Rule>,
    /// The index that finds the rules that can match a request with a given method and path.
    index: RuleIndex,
    /// For each rule, the charges and properties that [`plan_plain`](Self::plan_plain) uses.
    plain_rules: Arc<[PlainRule]>,
    pub(crate) match_mode: MatchMode,
    pub(crate) forwarding: Forwarding,
    pub(crate) answers: ResponseSettings,
    pub(crate) paths: PathOptions,
    /// The descriptor trees, sorted by name.
    pub(crate) domains: Vec<Domain>,
    pub(crate) shedding: Shedding,
    pub(crate) tenants: Option<TenantBinding>,
}

impl Policy {
    /// Creates a policy. Returns `None` if a limit refers to a missing dimension, if a rule refers
    /// to a missing limit or dimension, if a rule nests its conditions too deep, or if a rule
    /// meters a limit that it does not use.
    #[must_use]
    pub fn new(
        dimensions: Vec<Dimension>,
        limits: Vec<LimitBinding>,
        rules: Vec<Rule>,
        match_mode: MatchMode,
    ) -> Option<Self> {
        let known = |index: &usize| *index < dimensions.len();
        let limits_are_whole = limits.iter().all(|limit| limit.per.iter().all(known));
        let rules_are_whole = rules.iter().all(|rule| {
            let uses = |limit: usize| rule.limits.iter().any(|used| used.limit == limit);
            rule.limits.iter().all(|used| used.limit < limits.len())
                && rule.metered.iter().all(|metered| uses(metered.limit))
                && rule.matches.is_complete(dimensions.len(), 0)
        });
        let (forwarding, answers) = (Forwarding::default(), ResponseSettings::default());
        let policy = (limits_are_whole && rules_are_whole).then_some(Self {
            dimensions,
            limits,
            quotas: Vec::new(),
            windows: Vec::new(),
            index: RuleIndex::new(&rules),
            plain_rules: Arc::default(),
            rules,
            match_mode,
            forwarding,
            answers,
            paths: PathOptions::default(),
            domains: Vec::new(),
            shedding: Shedding::default(),
            tenants: None,
        });
        policy.map(Self::with_plain_rules)
    }

    /// Sets the proxies that are trusted to report the client's address.
    #[must_use]
    pub fn with_forwarding(mut self, forwarding: Forwarding) -> Self {
        self.forwarding = forwarding;
        self
    }

    /// Sets the options for comparing paths with the patterns of the rules.
    #[must_use]
    pub fn with_paths(mut self, paths: PathOptions) -> Self {
        self.paths = paths;
        if paths.case == PathCase::Ignore {
            for rule in &mut self.rules {
                rule.matches.ignore_path_case();
            }
            self.index = RuleIndex::new(&self.rules);
        }
        self
    }

    /// Sets the settings of responses to clients.
    #[must_use]
    pub fn with_answers(mut self, answers: ResponseSettings) -> Self {
        self.answers = answers;
        self
    }

    /// Sets the descriptor trees. Returns `None` if two domains have the same name, a tree is
    /// deeper than [`MAX_DEPTH`](descriptors::MAX_DEPTH), or a tree refers to a missing limit.
    #[must_use]
    pub fn with_descriptors(mut self, mut domains: Vec<Domain>) -> Option<Self> {
        domains.sort_by(|one, other| one.name.cmp(&other.name));
        let is_twice = domains.windows(2).any(|two| two[0].name == two[1].name);
        let are_complete =
            domains.iter().all(|domain| domain.tree.is_complete(self.limits.len(), 0));
        self.domains = domains;
        (!is_twice && are_complete).then_some(self)
    }

    /// Returns this policy as the replacement of the policy `old` at `now`. A limit of this policy
    /// that takes over the counters or the usage of the limit with the same name in `old` is
    /// connected with it: see [`Limit::replacing`] and [`Limit::with_predecessor`].
    #[must_use]
    pub fn replacing(mut self, old: &Self, now: Timestamp) -> Self {
        self.replace_limits(old, now);
        self.with_plain_rules()
    }

    /// Returns whether the counter that a request uses on the limit of `binding` depends on the
    /// dimension `name`: the dimension is part of the limit's subjects, or selects the quota, the
    /// windows or the tenant.
    #[must_use]
    pub fn uses_value(&self, binding: &LimitBinding, name: &str) -> bool {
        let quota = self.quotas_of(&binding.limit).and_then(QuotasByValue::dimension);
        let tenant = self.tenants.as_ref().map(|tenants| tenants.dimension);
        let window = self.windows_of(&binding.limit).map(WindowsByValue::dimension);
        let mut used = binding.per.iter().copied().chain(quota).chain(window).chain(tenant);
        used.any(|index| self.dimensions.get(index).is_some_and(|one| *one.name == *name))
    }

    /// Returns the dimensions of subjects.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> &[LimitBinding] {
        &self.limits
    }

    /// Returns the rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the setting that selects which of the matching rules apply.
    #[must_use]
    pub const fn match_mode(&self) -> MatchMode {
        self.match_mode
    }

    /// Returns the trusted proxies.
    #[must_use]
    pub const fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// Returns the options for comparing paths with the patterns of the rules.
    #[must_use]
    pub const fn paths(&self) -> PathOptions {
        self.paths
    }

    /// Returns the settings of responses to clients.
    #[must_use]
    pub const fn answers(&self) -> &ResponseSettings {
        &self.answers
    }

    /// Returns the descriptor trees, sorted by domain name.
    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Returns the descriptor tree of the domain `name`, or `None` if there is no such domain.
    #[must_use]
    pub fn descriptors(&self, name: &str) -> Option<&Domain> {
        let at = self.domains.binary_search_by(|domain| (*domain.name).cmp(name)).ok()?;
        Some(&self.domains[at])
    }
}
