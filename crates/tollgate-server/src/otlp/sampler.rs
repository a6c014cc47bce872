//! The selection of the traces that are recorded.

use opentelemetry_sdk::trace::Sampler;

/// Whether Tollgate follows the decision of a caller to record, or not to record, the caller's
/// trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentSampling {
    /// The caller decides on its trace. The configured share applies only to traces that begin at
    /// this node.
    #[default]
    Follow,
    /// The caller's decision is ignored, and the configured share applies to all traces. Use this
    /// variant for public listeners.
    Ignore,
}

/// Returns the sampler that records the share `share` of the traces, from 0 to 1. The sampler
/// selects traces by their ids, as all libraries of OpenTelemetry do, so services with the same
/// share record the same traces. `parents` selects whether a caller's decision on its trace takes
/// precedence over the share.
#[must_use]
pub fn sampler(share: f64, parents: ParentSampling) -> Sampler {
    let by_id = Sampler::TraceIdRatioBased(share);
    match parents {
        ParentSampling::Follow => Sampler::ParentBased(Box::new(by_id)),
        ParentSampling::Ignore => by_id,
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::trace::{SamplingDecision, ShouldSample};
    use tollgate::trace::opentelemetry::Context;
    use tollgate::trace::opentelemetry::trace::{
        SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId, TraceState,
    };

    use super::*;

    const HIGH: u128 = u128::MAX << 64;

    fn records(sampler: &Sampler, trace: TraceId, parent: Option<bool>) -> bool {
        let context = parent.map_or_else(Context::new, |is_sampled| {
            let flags = TraceFlags::default().with_sampled(is_sampled);
            let span = SpanId::from(1);
            let parent = SpanContext::new(trace, span, flags, true, TraceState::default());
            Context::new().with_remote_span_context(parent)
        });
        let sampled =
            sampler.should_sample(Some(&context), trace, "GET", &SpanKind::Server, &[], &[]);
        sampled.decision == SamplingDecision::RecordAndSample
    }

    #[test]
    fn none_all_and_a_share_by_the_low_half_of_the_id() {
        let records = |share, low: u64| {
            let trace = TraceId::from(HIGH | u128::from(low));
            records(&sampler(share, ParentSampling::Follow), trace, None)
        };
        for low in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!records(0.0, low));
            assert!(records(1.0, low));
        }
        let half = 1 << 63;
        assert!(records(0.5, half - 1));
        assert!(!records(0.5, half));
    }

    #[test]
    fn a_parent_decides_unless_it_is_ignored() {
        let trace = TraceId::from(u128::MAX);
        for is_sampled in [true, false] {
            for share in [0.0, 1.0] {
                let follow = sampler(share, ParentSampling::Follow);
                assert_eq!(records(&follow, trace, Some(is_sampled)), is_sampled);
                let ignore = sampler(share, ParentSampling::Ignore);
                assert_eq!(records(&ignore, trace, Some(is_sampled)), share == 1.0);
            }
        }
    }
}
