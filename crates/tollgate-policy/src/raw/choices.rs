//! The words that are values of keys.

use tollgate_calendar::Weekday;
use tollgate_core::algo::Anchor;
use tollgate_core::policy::descriptors::{Counting, NodeMode};
use tollgate_core::policy::{
    AddressHeader, AmbiguousPaths, ChargeOn, HeaderProfile, MatchMode, OnFailure, PathCase,
    PathParameters, RuleMode, UnreadBodies,
};
use tollgate_core::{CertificateName, LimitMode, OnChange, OnExpiry, Unit};

use crate::decode::choices;
use crate::settings::{DecisionClock, ReadFrom, StepForm, Transport};

/// The algorithm of a limit, without its numbers.
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
    /// Returns the algorithm's word in a policy file.
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

choices! {
    /// The algorithm of a limit.
    struct AlgorithmName(Kind) as "an algorithm" {
        /// Counts from zero in every window.
        "fixed_window" => Kind::FixedWindow,
        /// Counts the units of the last window, divided into blocks of `precision`.
        "sliding_window" => Kind::SlidingWindow,
        /// Estimates the usage of the last window from the current and the previous fixed window.
        /// It needs two numbers per subject, whatever the quota.
        "two_bucket" => Kind::TwoBucket,
        /// Stores the exact time of every admitted request. For quotas up to 10,000.
        "sliding_log" => Kind::SlidingLog,
        /// Refills continuously at `quota` per `window`, up to `burst`.
        "token_bucket" => Kind::TokenBucket,
        /// Counts the requests in flight, at most 10,000.
        "concurrency" => Kind::Concurrency,
    }
}

choices! {
    /// A name in a client's certificate.
    struct CertificateNameWord(CertificateName) as "a name in a certificate" {
        /// The whole subject, such as `C=DE,O=Example,CN=billing`.
        "subject" => CertificateName::Subject,
        /// The common name in the subject.
        "common_name" => CertificateName::CommonName,
        /// The first DNS name of the subject alternative names.
        "dns" => CertificateName::Dns,
        /// The first URI of the subject alternative names, such as a SPIFFE ID.
        "uri" => CertificateName::Uri,
        /// The first email address of the subject alternative names.
        "email" => CertificateName::Email,
    }
}

choices! {
    /// When a fixed window begins.
    struct AnchorName(Anchor) as "an anchor" {
        /// With the first request of each subject.
        "first_request" => Anchor::FirstRequest,
        /// At multiples of the window since 1970-01-01 UTC, at the same time for all subjects.
        "calendar" => Anchor::Calendar,
    }
}

choices! {
    /// The first day of a calendar week.
    struct WeekdayName(Weekday) as "a day of the week" {
        /// Monday, the first day of the week in ISO 8601.
        "monday" => Weekday::Monday,
        /// The day after Monday.
        "tuesday" => Weekday::Tuesday,
        /// The day after Tuesday.
        "wednesday" => Weekday::Wednesday,
        /// The day after Wednesday.
        "thursday" => Weekday::Thursday,
        /// The day after Thursday.
        "friday" => Weekday::Friday,
        /// The day after Friday.
        "saturday" => Weekday::Saturday,
        /// Sunday, the first day of the week in North America.
        "sunday" => Weekday::Sunday,
    }
}

choices! {
    /// The unit of a limit, as clients see it.
    struct UnitName(Unit) as "a unit" {
        /// Requests, or points that represent requests.
        "requests" => Unit::Requests,
        /// Bytes of content.
        "content-bytes" => Unit::ContentBytes,
        /// Requests in flight.
        "concurrent-requests" => Unit::ConcurrentRequests,
    }
}

choices! {
    /// The treatment of a reservation that expires before it is settled.
    struct OnExpiryName(OnExpiry) as "an on_expiry mode" {
        /// The reserved units are refunded to the limit.
        "release" => OnExpiry::Release,
        /// The reserved units stay used.
        "charge" => OnExpiry::Charge,
    }
}

choices! {
    /// The treatment of existing counters when the limit is changed.
    struct OnChangeName(OnChange) as "an on_change mode" {
        /// Used units stay used, and the current window ends when it was going to end. Counters
        /// start from zero if the algorithm changes, if the window of a `token_bucket` or a
        /// `two_bucket` changes, if the `precision` of a `sliding_window` changes, and if the
        /// `permit_ttl` of a `concurrency` limit changes.
        "keep" => OnChange::Keep,
        /// All counters start from zero.
        "reset" => OnChange::Restart,
        /// The used share of the quota stays the same with the new numbers or algorithm: if half of
        /// the old quota was used, half of the new quota is used. Requests in flight start from
        /// zero.
        "scale" => OnChange::Scale,
    }
}

choices! {
    /// How a value is stored.
    struct KeepMode(StorageForm) as "a `keep` mode" {
        /// As a hash with the deployment's key: it cannot be read from the store.
        "hashed" => StorageForm::Hashed,
        /// In clear text: it can be read by anyone with access to the store.
        "clear" => StorageForm::Clear,
    }
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageForm {
    Hashed,
    Clear,
}

choices! {
    /// The answer to a request with a body in which a subject cannot be read.
    struct UnreadName(UnreadBodies) as "a setting for unread bodies" {
        /// The request is treated like a request without the subject.
        "pass" => UnreadBodies::Pass,
        /// The request is refused by `tollgate proxy`: with 415 if its `Content-Type` is not JSON or its body is compressed, 413 if the body is longer than 256 KiB, 408 if the body takes longer than 5 s, 417 with `Expect: 100-continue`, 503 if there is no room to read the body, and 400 if the body has neither a text nor a whole number at that pointer, or more than one value.
        "refuse" => UnreadBodies::Refuse,
    }
}

choices! {
    /// Which of the matching rules decide.
    struct RuleOrder(MatchMode) as "a rules_apply mode" {
        /// Only the first rule that matches.
        "first_match" => MatchMode::FirstMatch,
        /// Every rule that matches, in one charge: all their limits admit the request, or none is
        /// charged.
        "all_matches" => MatchMode::AllMatches,
    }
}

choices! {
    /// Whether the case of letters in paths counts.
    struct PathCaseName(PathCase) as "a setting for case" {
        /// `/Login` is not `/login`.
        "exact" => PathCase::Exact,
        /// `/Login` is `/login`, as in Express, ASP.NET and services on Windows. The values of `path_parameter` and `path_segment` are then in lower case.
        "ignore" => PathCase::Ignore,
    }
}

choices! {
    /// Whether the parameters of path segments count.
    struct PathParametersName(PathParameters) as "a setting for parameters" {
        /// `/login;v=1` is not `/login`.
        "keep" => PathParameters::Keep,
        /// `/login;v=1` is `/login`, as in Tomcat, Jetty and Spring.
        "drop" => PathParameters::Drop,
    }
}

choices! {
    /// The answer to requests with a path that services interpret in different ways.
    struct AmbiguousPathsName(AmbiguousPaths) as "a setting for ambiguous paths" {
        /// The requests are answered with 400 and are not charged.
        "refuse" => AmbiguousPaths::Refuse,
        /// The requests are matched by their decoded segments and forwarded unchanged.
        "pass" => AmbiguousPaths::Pass,
    }
}

choices! {
    /// Whether a rule refuses requests.
    struct RuleModeName(RuleMode) as "a mode" {
        /// Refuses requests that exceed a limit.
        "enforce" => RuleMode::Enforce,
        /// Counts and evaluates, but never refuses a request.
        "shadow" => RuleMode::Shadow,
    }
}

choices! {
    /// What decides charges on a limit.
    struct LimitModeName(LimitMode) as "a limit mode" {
        /// In the store, for each request.
        "exact" => LimitMode::Exact,
        /// On the nodes, with quota leases: a node takes units of often charged subjects from the
        /// store in advance. It never admits more than the quota and needs far fewer store calls.
        /// Units that other nodes have taken and not used count as used for up to half a second.
        /// Only for `fixed_window` and `sliding_window`, and not with `count_refused`. A lease
        /// lasts for one window, or for one block of a sliding window.
        "leased" => LimitMode::Leased,
    }
}

choices! {
    /// How the descriptors of one request are counted.
    struct CountingName(Counting) as "a counting mode" {
        /// In one charge: a refused request is not counted on any limit.
        "atomic" => Counting::Atomic,
        /// Each descriptor separately, as `envoyproxy/ratelimit` does: if one refuses, the others
        /// are still counted.
        "each" => Counting::Each,
    }
}

choices! {
    /// The effect of a descriptor's refusal.
    struct DescriptorMode(NodeMode) as "a mode" {
        /// The request is refused.
        "enforce" => NodeMode::Enforce,
        /// The descriptor is counted and evaluated, but never refuses a request.
        "shadow" => NodeMode::Shadow,
        /// The request is refused when all its quotas are exceeded. Quotas with the same
        /// `backend_name` and `model_name_override` are exceeded together.
        "quota" => NodeMode::Quota,
    }
}

choices! {
    /// When a request is charged.
    struct ChargeMoment(ChargeOn) as "a charge mode" {
        /// On arrival, and refunded if the response turns out to be free. This is exact.
        "on_arrival" => ChargeOn::Arrival,
        /// When the response is known, unless it is free. On arrival the limits are only read, for
        /// which a replica is enough. Requests in flight at the same time can exceed a limit that
        /// has room for only one of them.
        "on_completion" => ChargeOn::Completion,
    }
}

choices! {
    /// Response header fields with the client's status.
    struct ProfileName(HeaderProfile) as "a header profile" {
        /// `x-ratelimit-limit`, `-remaining`, `-used`, `-reset` (epoch seconds) and `-resource`.
        "github" => HeaderProfile::GitHub,
        /// `ratelimit-policy` and `ratelimit`, as in the current IETF draft.
        "ietf" => HeaderProfile::Ietf,
        /// `x-ratelimit-limit` with its policies, `-remaining` and `-reset` (seconds from now), as
        /// in draft 03.
        "draft-03" => HeaderProfile::Draft03,
        /// `ratelimit-limit`, `-remaining` and `-reset` (seconds from now), as in drafts 04 to 06.
        "three-fields" => HeaderProfile::ThreeFields,
    }
}

choices! {
    /// The fallback for requests while the store does not answer.
    struct OnFailureName(OnFailure) as "an on_failure mode" {
        /// The request is admitted: an outage of the limiter does not become an outage of the
        /// service.
        "allow" => OnFailure::Allow,
        /// This node decides alone, with its share of each limit and the last status that it
        /// received.
        "local" => OnFailure::Local,
        /// The request is refused with 503, for endpoints such as sign-in for which unlimited
        /// requests are worse.
        "deny" => OnFailure::Deny,
    }
}

choices! {
    /// The header that the trusted proxies write.
    struct HeaderName(AddressHeader) as "a forwarding header" {
        /// `X-Forwarded-For`.
        "x-forwarded-for" => AddressHeader::XForwardedFor,
        /// `Forwarded`, RFC 7239.
        "forwarded" => AddressHeader::Forwarded,
    }
}

choices! {
    /// The clock for decisions.
    struct ClockName(DecisionClock) as "a clock" {
        /// The node's own clock.
        "node" => DecisionClock::Application,
        /// The shard's clock, estimated from its replies. For fleets with unreliable clocks.
        "store" => DecisionClock::Store,
    }
}

choices! {
    /// The servers that reads of a client's status are sent to.
    struct ReadsName(ReadFrom) as "a `reads` mode" {
        /// Replicas, and the primary if no replica can answer.
        "replicas" => ReadFrom::Replicas,
        /// Primaries only.
        "primaries" => ReadFrom::Primaries,
    }
}

choices! {
    /// How a decision runs on the servers.
    struct ScriptingName(StepForm) as "a scripting mode" {
        /// In the server module if the server has loaded it, otherwise as a function if the server
        /// supports functions (since 7.0), otherwise as a script.
        "auto" => StepForm::Automatic,
        /// In the server module, with tables that many subjects share. Servers and replicas without
        /// the module are not used. In a Redis Cluster, as `auto`.
        "tables" => StepForm::Tables,
        /// As a function on every server.
        "function" => StepForm::Function,
        /// As a script on every server.
        "script" => StepForm::Script,
    }
}

/// How the servers of a shard are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopologyKind {
    Static,
    Sentinel,
    Cluster,
}

choices! {
    /// How the servers of a shard are found.
    struct TopologyName(TopologyKind) as "a topology" {
        /// The policy file lists them: `primary` and `replicas`.
        "static" => TopologyKind::Static,
        /// Sentinels announce them: `sentinels` and `service`.
        "sentinel" => TopologyKind::Sentinel,
        /// The shard is a Redis Cluster: `nodes`.
        "cluster" => TopologyKind::Cluster,
    }
}

choices! {
    /// The transport to servers that sentinels announce.
    struct TransportName(Transport) as "a transport" {
        /// Unencrypted.
        "tcp" => Transport::Tcp,
        /// TLS, with the certificates of `tls`. The servers' certificates must be valid for the
        /// announced hosts.
        "tls" => Transport::Tls,
    }
}
