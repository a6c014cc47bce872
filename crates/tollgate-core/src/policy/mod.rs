//! From a request to its charges: subjects, limits by name, rules in order.
//!
//! This is the policy as meant. The file as written is the business of `tollgate-policy`.

pub mod address;
mod ambiguity;
pub mod answers;
mod credential;
pub mod descriptors;
mod host;
pub mod matching;
pub mod metered;
pub mod named;
pub mod path;
pub mod plan;
pub mod pointer;
pub mod priority;
pub mod queue;
pub mod rule;
pub mod shedding;
pub mod subject;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use address::{AddressHeader, Forwarding, Network};
pub use ambiguity::Ambiguity;
pub use answers::{HeaderProfile, ResponseSettings};
pub use descriptors::Domain;
pub use matching::{HeaderMatch, Mismatch, RequestMatch};
pub use metered::{Estimate, Meter, MeteredLimit, ReservationAmount, ReservationSource};
pub use named::{NameError, Named, NamedPlan};
pub use path::{AmbiguousPaths, PathCase, PathOptions, PathParameters, PathPattern};
pub use plan::{Plan, PlannedCharge, RuleSwitch};
pub use pointer::{JsonPointer, PointerError};
pub use priority::Priority;
pub use queue::Queue;
pub use rule::{ChargeOn, LimitRef, OnFailure, Rule, RuleMode};
pub use shedding::Shedding;
pub use subject::{Dimension, SubjectSource};

use crate::limit::Limit;
use crate::time::Timestamp;

/// Which of the rules that match decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// The first rule that matches, alone.
    #[default]
    FirstMatch,
    /// Every rule that matches, as one charge.
    AllMatches,
}

/// A limit and the dimensions of whom it limits.
#[derive(Clone, Debug)]
pub struct LimitBinding {
    /// The limit.
    pub limit: Arc<Limit>,
    /// Indices into [`Policy::dimensions`]; none for one counter over everybody.
    pub per: Vec<usize>,
}

/// A policy, checked: every index points to something.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) limits: Vec<LimitBinding>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) match_mode: MatchMode,
    pub(crate) forwarding: Forwarding,
    pub(crate) answers: ResponseSettings,
    pub(crate) paths: PathOptions,
    /// In the order of their names.
    pub(crate) domains: Vec<Domain>,
    pub(crate) shedding: Shedding,
}

impl Policy {
    /// Puts a policy together; `None` if a limit names a dimension, or a rule a limit or a
    /// dimension, that is not there, or a rule meters a limit that it does not use.
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
                && rule.matches.has.iter().chain(&rule.matches.lacks).all(known)
        });
        let (forwarding, answers) = (Forwarding::default(), ResponseSettings::default());
        (limits_are_whole && rules_are_whole).then_some(Self {
            dimensions,
            limits,
            rules,
            match_mode,
            forwarding,
            answers,
            paths: PathOptions::default(),
            domains: Vec::new(),
            shedding: Shedding::default(),
        })
    }

    /// Sets which proxies are believed about the client's address.
    #[must_use]
    pub fn with_forwarding(mut self, forwarding: Forwarding) -> Self {
        self.forwarding = forwarding;
        self
    }

    /// Sets how paths are compared with the patterns of the rules.
    #[must_use]
    pub fn with_paths(mut self, paths: PathOptions) -> Self {
        self.paths = paths;
        if paths.case == PathCase::Ignore {
            for rule in &mut self.rules {
                let patterns = core::mem::take(&mut rule.matches.paths).into_iter();
                rule.matches.paths = patterns.map(PathPattern::ignoring_case).collect();
            }
        }
        self
    }

    /// Sets what clients are answered.
    #[must_use]
    pub fn with_answers(mut self, answers: ResponseSettings) -> Self {
        self.answers = answers;
        self
    }

    /// Sets the descriptor trees; `None` if two domains have one name, a tree is deeper than
    /// [`MAX_DEPTH`](descriptors::MAX_DEPTH), or names a limit that is not there.
    #[must_use]
    pub fn with_descriptors(mut self, mut domains: Vec<Domain>) -> Option<Self> {
        domains.sort_by(|one, other| one.name.cmp(&other.name));
        let is_twice = domains.windows(2).any(|two| two[0].name == two[1].name);
        let are_whole = domains.iter().all(|domain| domain.tree.is_whole(self.limits.len(), 0));
        self.domains = domains;
        (!is_twice && are_whole).then_some(self)
    }

    /// This policy in the place of `old` at `now`: each limit that keeps its counters
    /// [in the place of](Limit::replacing) the old one, or [with_predecessor](Limit::with_predecessor) it.
    #[must_use]
    pub fn replacing(mut self, old: &Self, now: Timestamp) -> Self {
        for binding in &mut self.limits {
            let (digest, name) = (binding.limit.state_digest(), binding.limit.name());
            let keeps = old.limits.iter().find(|old| old.limit.state_digest() == digest);
            let former = old.limits.iter().find(|old| old.limit.name() == name);
            if keeps.is_none() && former.is_none() {
                continue;
            }
            let mut limit = Limit::clone(&binding.limit);
            if let Some(old) = keeps {
                limit = limit.replacing(&old.limit);
            }
            if let Some(old) = former {
                limit = limit.with_predecessor(&old.limit, now);
            }
            binding.limit = Arc::new(limit);
        }
        self
    }

    /// Whether anything is read from the bodies of requests, so that a listener has reason to read them.
    #[must_use]
    pub fn reads_bodies(&self) -> bool {
        let is_json =
            |dimension: &Dimension| matches!(dimension.source, SubjectSource::Json { .. });
        let metered = self.rules.iter().flat_map(|rule| &rule.metered);
        let mut sources = metered.filter_map(|metered| Some(&metered.reserve.as_ref()?.source));
        self.dimensions.iter().any(is_json)
            || sources.any(|source| matches!(source, ReservationSource::Json { .. }))
    }

    /// The dimensions of subjects.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &[LimitBinding] {
        &self.limits
    }

    /// The rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Which of the rules that match decide.
    #[must_use]
    pub const fn match_mode(&self) -> MatchMode {
        self.match_mode
    }

    /// Which proxies are believed.
    #[must_use]
    pub const fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// How paths are compared with the patterns of the rules.
    #[must_use]
    pub const fn paths(&self) -> PathOptions {
        self.paths
    }

    /// What clients are answered.
    #[must_use]
    pub const fn answers(&self) -> &ResponseSettings {
        &self.answers
    }

    /// The descriptor trees, in the order of their domains' names.
    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The descriptor tree of the domain `name`.
    #[must_use]
    pub fn descriptors(&self, name: &str) -> Option<&Domain> {
        let at = self.domains.binary_search_by(|domain| (*domain.name).cmp(name)).ok()?;
        Some(&self.domains[at])
    }
}
