//! The keys of a policy file as they are written.
//!
//! Their docs are the reference that people read, in the schema as in the book.

mod answers;
mod candidate;
mod choices;
mod cost;
mod deployment;
mod descriptors;
mod limit;
mod memcached;
mod migration;
mod redis;
mod rule;
mod serve;
mod shed;
mod subject;
mod traces;

pub(crate) use answers::Answers;
pub(crate) use candidate::Candidate;
pub(crate) use choices::{HeaderName, Keep, Kept, Kind, RuleOrder, TopologyKind};
pub(crate) use cost::{Cost, Metered, Reserve};
pub(crate) use deployment::{Forwarded, Memory, Secret, Store};
pub(crate) use descriptors::{DescriptorDomain, DescriptorNode};
pub(crate) use limit::{Limit, Reservation};
pub(crate) use memcached::Memcached;
pub(crate) use migration::{Rollout, Shadow, Side};
pub(crate) use redis::{Redis, Shard, Tls};
pub(crate) use rule::{Conditions, LimitUse, Queue, Rule};
pub(crate) use serve::{Dashboard, Listener, ListenerTls, Serve};
pub(crate) use shed::{Adaptive, AdaptiveKind, Fleet, Shed, ShedModeName, Worker};
pub(crate) use subject::Subject;
pub(crate) use traces::Traces;

use crate::decode::{List, Names, OneOrMore, Text, keys};

keys! {
    /// A policy of Tollgate: who is counted, which limits there are, and which requests meet them.
    struct PolicyFile as "a policy", requires "limits" {
        /// Who is counted: each name stands for something that is read from a request.
        subjects: Names<Subject>,
        /// The networks of the proxies that are believed about whom they forward for, such as `10.0.0.0/8`. By default nobody is.
        trusted_proxies: OneOrMore<Text>,
        /// How the trusted proxies tell whom they forward for.
        forwarded: Forwarded,
        /// The limits by their names.
        limits: Names<Limit>,
        /// Which of the rules that match a request decide. By default `first_match`: the first one, alone.
        rules_apply: RuleOrder,
        /// Which requests meet which limits, in this order. A request that no rule matches is not limited.
        rules: List<Rule>,
        /// Limits for callers that say themselves what a request is, as Envoy does: a tree for each of their domains.
        descriptors: List<DescriptorDomain>,
        /// What clients are told.
        answers: Answers,
        /// What is shed when there is more to do than can be done. By default nothing.
        shed: Shed,
        /// Where the key comes from under which credentials are hashed before they are used. By default one is made by chance when the process starts.
        secret: Secret,
        /// Where the counters are kept. By default in memory.
        store: Store,
        /// The listeners through which other programs ask `tollgate serve`.
        serve: Serve,
        /// Where spans of requests are sent, for tracing. By default nowhere.
        traces: Traces,
    }
}
