//! Which traces are recorded.

use super::context::{SpanContext, TraceId};

const MILLION: u32 = 1_000_000;

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    per_million: u32,
    parents: ParentSampling,
}

/// Whether a caller's decision to record its trace counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentSampling {
    /// The caller's decision counts. The share applies to traces that begin here.
    #[default]
    Follow,
    /// The caller's decision does not count: the share applies to all traces, by their ids. For
    /// public listeners.
    Ignore,
}

impl Sampler {
    /// Records `per_million` of a million traces; a value above a million records all.
    #[must_use]
    pub const fn new(per_million: u32, parents: ParentSampling) -> Self {
        let per_million = if per_million > MILLION { MILLION } else { per_million };
        Self { per_million, parents }
    }

    pub(super) fn records(self, trace: TraceId, parent: Option<&SpanContext>) -> bool {
        match (self.parents, parent) {
            (ParentSampling::Follow, Some(parent)) => parent.is_sampled,
            (ParentSampling::Ignore, _) | (ParentSampling::Follow, None) => self.is_among(trace),
        }
    }

    /// By the low half of the id and a bound, as the samplers of OpenTelemetry's libraries do:
    /// services that record the same share record the same traces.
    fn is_among(self, trace: TraceId) -> bool {
        let [.., a, b, c, d, e, f, g, h] = trace.0;
        let drawn = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
        let bound = u128::from(self.per_million) * (1 << 63) / u128::from(MILLION);
        u128::from(drawn) < bound
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::SpanId;
    use super::*;

    fn parent(is_sampled: bool) -> SpanContext {
        SpanContext { trace: TraceId([0xff; 16]), span: SpanId([1; 8]), is_sampled }
    }

    #[test]
    fn none_all_and_a_share_by_the_low_half_of_the_id() {
        let id = |low: u64| {
            let mut bytes = [0xff; 16];
            bytes[8..].copy_from_slice(&low.to_be_bytes());
            TraceId(bytes)
        };
        let records = |per_million, low| {
            Sampler::new(per_million, ParentSampling::Follow).records(id(low), None)
        };
        for low in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!records(0, low));
            assert!(records(MILLION, low));
            assert!(records(u32::MAX, low));
        }
        let half = 1 << 63;
        assert!(records(500_000, half - 1));
        assert!(!records(500_000, half));
    }

    #[test]
    fn a_parent_decides_unless_it_is_ignored() {
        let trace = TraceId([0xff; 16]);
        for is_sampled in [true, false] {
            let parent = parent(is_sampled);
            for share in [0, MILLION] {
                let follow = Sampler::new(share, ParentSampling::Follow);
                assert_eq!(follow.records(trace, Some(&parent)), is_sampled);
                let ignore = Sampler::new(share, ParentSampling::Ignore);
                assert_eq!(ignore.records(trace, Some(&parent)), share == MILLION);
            }
        }
    }
}
