//! A policy that decides requests with descriptors. The counters are in a map.

use std::collections::HashMap;

use tollgate_core::policy::descriptors::{
    Descriptor, DescriptorOutcome, Hits, NodeMode, PlannedDescriptor, QuotaGroup,
};
use tollgate_core::{
    Admission, Cell, ChargeId, Cost, KeyedHash, Operation, Policy, Subject, Timestamp, decide,
};

use crate::import::reference_server::{Answer, Asked};

/// A policy and its counters.
pub(crate) struct Served {
    policy: Policy,
    cells: HashMap<(String, Subject), Cell>,
}

impl Served {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, cells: HashMap::new() }
    }

    /// Decides a request to `domain`. Each descriptor is charged separately.
    pub(crate) fn should_rate_limit(
        &mut self,
        domain: &str,
        now: u64,
        request: &[Asked],
    ) -> Answer {
        let borrowed: Vec<Vec<(&str, &str)>> = request
            .iter()
            .map(|requested| {
                requested.entries.iter().map(|(key, value)| (&**key, &**value)).collect()
            })
            .collect();
        let descriptors: Vec<_> = request
            .iter()
            .zip(&borrowed)
            .map(|(requested, entries)| Descriptor {
                entries,
                hits: Hits::Charge(Cost::new(requested.hits).unwrap()),
                rate: None,
            })
            .collect();
        let planned = self.policy.plan_descriptors(domain, &descriptors, &Unhashed).descriptors;
        let planned: Vec<_> = planned
            .into_iter()
            .map(|PlannedDescriptor { outcome, mode, group, .. }| (outcome, mode, group))
            .collect();
        let mut answer = Answer { is_over: false, descriptors: Vec::new() };
        let mut groups: HashMap<QuotaGroup, bool> = HashMap::new();
        for (outcome, mode, group) in planned {
            let is_over = self.is_over(outcome, now) && mode != NodeMode::Shadow;
            answer.descriptors.push(is_over);
            match group {
                Some(group) => *groups.entry(group).or_default() |= is_over,
                None => answer.is_over |= is_over,
            }
        }
        answer.is_over |= !groups.is_empty() && groups.values().all(|over| *over);
        answer
    }

    fn is_over(&mut self, outcome: DescriptorOutcome, now: u64) -> bool {
        let limited = match outcome {
            DescriptorOutcome::Limited(limited) => limited,
            DescriptorOutcome::Blocked => return true,
            DescriptorOutcome::Unmatched
            | DescriptorOutcome::Unlimited
            | DescriptorOutcome::Replaced => return false,
        };
        let Hits::Charge(cost) = limited.hits else { unreachable!("nothing is given back here") };
        let place = (limited.limit.name().to_owned(), limited.subject);
        let operation = Operation::Charge { cost, id: ChargeId::default() };
        let now = Timestamp::from_millis(now * 1000);
        let (reading, cell) = decide(self.cells.remove(&place), &limited.limit, operation, now);
        self.cells.extend(cell.map(|cell| (place, cell)));
        reading.admission != Admission::Now
    }
}

struct Unhashed;

impl KeyedHash for Unhashed {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.len() as u8; 16]
    }
}
