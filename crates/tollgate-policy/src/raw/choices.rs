//! The words among which a policy file chooses.

use tollgate_core::algo::Anchor;
use tollgate_core::policy::descriptors::{Counting, NodeMode};
use tollgate_core::policy::{
    AddressHeader, ChargeOn, HeaderProfile, MatchMode, OnFailure, RuleMode,
};
use tollgate_core::{LimitMode, OnChange, OnExpiry, Unit};

use crate::decode::words;
use crate::settings::{DecisionClock, ReadFrom, StepForm, Transport};

/// How a limit counts, without its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    FixedWindow,
    SlidingWindow,
    TwoBucket,
    SlidingLog,
    TokenBucket,
    Concurrency,
}

impl Kind {
    /// The word that stands for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::FixedWindow => "fixed_window",
            Self::SlidingWindow => "sliding_window",
            Self::TwoBucket => "two_bucket",
            Self::SlidingLog => "sliding_log",
            Self::TokenBucket => "token_bucket",
            Self::Concurrency => "concurrency",
        }
    }
}

words! {
    /// How a limit counts.
    struct AlgorithmName(Kind) as "an algorithm" {
        /// Counts from zero in every window.
        "fixed_window" => Kind::FixedWindow,
        /// Counts what came in the last window, cut into pieces of `precision`.
        "sliding_window" => Kind::SlidingWindow,
        /// Estimates the last window from this one and the one before: two numbers whatever the quota.
        "two_bucket" => Kind::TwoBucket,
        /// Keeps the exact time of every admitted request; for quotas up to 10,000.
        "sliding_log" => Kind::SlidingLog,
        /// Refills evenly with `quota` in a `window`, up to `burst`.
        "token_bucket" => Kind::TokenBucket,
        /// Counts the requests in flight, at most 10,000.
        "concurrency" => Kind::Concurrency,
    }
}

words! {
    /// When a fixed window begins.
    struct AnchorName(Anchor) as "an anchor" {
        /// With a client's first request.
        "first_request" => Anchor::FirstRequest,
        /// On multiples of the window since 1970, for everybody at once.
        "calendar" => Anchor::Calendar,
    }
}

words! {
    /// What a limit is measured in, as clients are told.
    struct UnitName(Unit) as "a unit" {
        /// Requests, or points that stand for them.
        "requests" => Unit::Requests,
        /// Bytes of content.
        "content-bytes" => Unit::ContentBytes,
        /// Requests in flight.
        "concurrent-requests" => Unit::ConcurrentRequests,
    }
}

words! {
    /// What becomes of a reservation that nobody settled in time.
    struct OnExpiryName(OnExpiry) as "an expiry" {
        /// Its units are given back to where they were taken from.
        "release" => OnExpiry::Release,
        /// Its units stay used.
        "charge" => OnExpiry::Charge,
    }
}

words! {
    /// What becomes of a limit's counters when the limit is changed.
    struct OnChangeName(OnChange) as "an on_change mode" {
        /// What was used stays used, and the window that runs ends when it was to end. Counters of another algorithm, of a token bucket or a two-bucket estimate with another window, of a sliding window with another precision and of a concurrency limit with another `permit_ttl` start from zero.
        "keep" => OnChange::Keep,
        /// Every counter starts from zero.
        "reset" => OnChange::Restart,
        /// The same part of the quota stays used, whatever the new numbers or algorithm are: of half of the old quota, half of the new one. Requests in flight start from zero.
        "scale" => OnChange::Scale,
    }
}

words! {
    /// How a value is kept.
    struct Keep(Kept) as "a way to keep a value" {
        /// Only as a hash under the deployment's key: nobody can read it from the store.
        "hashed" => Kept::Hashed,
        /// As it is: readable for whoever looks into the store.
        "clear" => Kept::Clear,
    }
}

/// How a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Hashed,
    Clear,
}

words! {
    /// Which of the rules that match a request decide.
    struct RuleOrder(MatchMode) as "an order" {
        /// The first rule that matches, alone.
        "first_match" => MatchMode::FirstMatch,
        /// Every rule that matches, as one charge: all of their limits admit the request, or none is charged.
        "all_matches" => MatchMode::AllMatches,
    }
}

words! {
    /// Whether a rule refuses.
    struct RuleModeName(RuleMode) as "a mode" {
        /// Refuses what does not fit.
        "enforce" => RuleMode::Enforce,
        /// Counts and judges, and lets everything pass.
        "shadow" => RuleMode::Shadow,
    }
}

words! {
    /// Where a limit is decided.
    struct LimitModeName(LimitMode) as "a mode of a limit" {
        /// By the store, each request by itself.
        "exact" => LimitMode::Exact,
        /// By nodes, out of units that they take from the store in advance where a subject is charged often: never more than the quota, and far fewer calls. What other nodes have and do not use counts as used for up to half a second. Only of a `fixed_window` and a `sliding_window`, and not with `count_refused`; a lease lasts for one window, or one block of a sliding one.
        "leased" => LimitMode::Leased,
    }
}

words! {
    /// How the descriptors of one request are counted.
    struct CountingName(Counting) as "a way to count" {
        /// As one charge: a request that is refused is counted nowhere.
        "atomic" => Counting::Atomic,
        /// Each by itself, as the reference server does: what one refuses, the others still count.
        "each" => Counting::Each,
    }
}

words! {
    /// What a descriptor's refusal means.
    struct DescriptorMode(NodeMode) as "a mode" {
        /// The request is refused.
        "enforce" => NodeMode::Enforce,
        /// Nothing: it counts and judges, and lets everything pass.
        "shadow" => NodeMode::Shadow,
        /// The request is refused once all its quotas are over; those with the same `backend_name` and `model_name_override` are over together.
        "quota" => NodeMode::Quota,
    }
}

words! {
    /// When a request is charged.
    struct ChargeMoment(ChargeOn) as "a moment" {
        /// When it arrives, given back if its answer turns out free: exact.
        "on_arrival" => ChargeOn::Arrival,
        /// When its answer is known, unless that is free. On arrival it is only looked at, which a replica can answer; requests in flight together may pass a limit that has room for one.
        "on_completion" => ChargeOn::Completion,
    }
}

words! {
    /// Header fields that tell a client how it stands.
    struct ProfileName(HeaderProfile) as "a header profile" {
        /// `x-ratelimit-limit`, `-remaining`, `-used`, `-reset` (epoch seconds) and `-resource`.
        "github" => HeaderProfile::GitHub,
        /// `ratelimit-policy` and `ratelimit`, after the current IETF draft.
        "ietf" => HeaderProfile::Ietf,
        /// `x-ratelimit-limit` with its policies, `-remaining` and `-reset` (seconds from now), after draft 03.
        "draft-03" => HeaderProfile::Draft03,
        /// `ratelimit-limit`, `-remaining` and `-reset` (seconds from now), after drafts 04 to 06.
        "three-fields" => HeaderProfile::ThreeFields,
    }
}

words! {
    /// What becomes of a request while the store has no answer.
    struct OnFailureName(OnFailure) as "a way to fail" {
        /// It passes: an outage of the limiter is not one of the service.
        "allow" => OnFailure::Allow,
        /// This node decides alone, by its share of each limit and from the last status that it saw.
        "local" => OnFailure::Local,
        /// It is refused with 503: where passing unlimited is worse, such as sign-in.
        "deny" => OnFailure::Deny,
    }
}

words! {
    /// Which header the trusted proxies write.
    struct HeaderName(AddressHeader) as "a forwarding header" {
        /// `X-Forwarded-For`.
        "x-forwarded-for" => AddressHeader::XForwardedFor,
        /// `Forwarded`, RFC 7239.
        "forwarded" => AddressHeader::Forwarded,
    }
}

words! {
    /// Whose time decides.
    struct ClockName(DecisionClock) as "a clock" {
        /// The node's own clock.
        "node" => DecisionClock::Application,
        /// The shard's, estimated from its replies: for fleets whose own clocks cannot be trusted.
        "store" => DecisionClock::Store,
    }
}

words! {
    /// Which servers are asked how a client stands.
    struct ReadsName(ReadFrom) as "a kind of server" {
        /// Replicas, and the primary where none is fit to answer.
        "replicas" => ReadFrom::Replicas,
        /// Primaries alone.
        "primaries" => ReadFrom::Primaries,
    }
}

words! {
    /// How a decision runs in the servers.
    struct ScriptingName(StepForm) as "a form" {
        /// As a function where the server has functions, which it does since 7.0; else as a script.
        "auto" => StepForm::Automatic,
        /// As a function.
        "function" => StepForm::Function,
        /// As a script.
        "script" => StepForm::Script,
    }
}

/// How it is known which servers a shard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopologyKind {
    Static,
    Sentinel,
    Cluster,
}

words! {
    /// How it is known which servers a shard has.
    struct TopologyName(TopologyKind) as "a topology" {
        /// This file names them: `primary` and `replicas`.
        "static" => TopologyKind::Static,
        /// Sentinels name them: `sentinels` and `service`.
        "sentinel" => TopologyKind::Sentinel,
        /// A Redis Cluster: `nodes`.
        "cluster" => TopologyKind::Cluster,
    }
}

words! {
    /// How servers are reached that others name.
    struct TransportName(Transport) as "a transport" {
        /// In clear.
        "tcp" => Transport::Tcp,
        /// Under TLS, with the certificates of `tls`. Theirs are for the hosts as they are announced.
        "tls" => Transport::Tls,
    }
}
