//! The keys of a policy file.
//!
//! The doc comments of the keys are the descriptions in the schema and in the reference.

mod amount;
mod answers;
mod billing_day;
mod candidate;
mod choices;
mod conditions;
mod cost;
mod deployment;
mod descriptors;
mod jwt;
mod limit;
mod memcached;
mod memory;
mod migration;
mod networks;
mod paths;
mod redis;
mod rule;
mod secret;
mod serve;
mod shed;
mod subject;
mod tenants;
mod traces;

pub(crate) use amount::{Amount, ByValue};
pub(crate) use answers::{Answers, RefuseAnswer};
pub(crate) use billing_day::BillingDay;
pub(crate) use candidate::Candidate;
pub(crate) use choices::{
    CertificateNameWord, HeaderName, KeepMode, Kind, RuleOrder, StorageForm, TopologyKind,
    UnreadName,
};
pub(crate) use conditions::{Conditions, ValueForm, WantedValue, WantedValues};
pub(crate) use cost::{Cost, Metered, Reserve};
pub(crate) use deployment::{Forwarded, Store};
pub(crate) use descriptors::{DescriptorDomain, DescriptorNode};
pub(crate) use jwt::Jwt;
pub(crate) use limit::{Limit, Reservation};
pub(crate) use memcached::Memcached;
pub(crate) use memory::Memory;
pub(crate) use migration::{Rollout, Shadow, Side};
pub(crate) use networks::Networks;
pub(crate) use paths::Paths;
pub(crate) use redis::{Redis, Shard, Tls};
pub(crate) use rule::{LimitUse, Queue, Rule};
pub(crate) use secret::Secret;
pub(crate) use serve::{Dashboard, Listener, ListenerTls, Serve};
pub(crate) use shed::{Adaptive, AdaptiveKind, Fleet, Shed, ShedModeName, Worker};
pub(crate) use subject::Subject;
pub(crate) use tenants::Tenants;
pub(crate) use traces::Traces;

use crate::decode::{List, Names, OneOrMore, Text, keys};

keys! {
    /// A policy of Tollgate: the subjects, the limits, and the requests that the limits apply to.
    struct PolicyFile as "a policy", requires "limits" {
        /// Files with more keys of the policy, relative to the directory of this file. Their subjects, networks and
        /// limits are added to those of this file, and their rules and descriptors come first, in
        /// the order of the files. Every other key is in one file only.
        include: OneOrMore<Text>,
        /// The subjects: each name refers to a value that is read from a request.
        subjects: Names<Subject>,
        /// JSON web tokens (JWT), whose claims can be subjects.
        jwt: Jwt,
        /// Clients with a plan and quotas of their own, which administrators set while nodes run.
        tenants: Tenants,
        /// The networks of the trusted proxies, which may set the forwarding header, such as `10.0.0.0/8`.
        /// By default none.
        trusted_proxies: OneOrMore<Text>,
        /// How the trusted proxies announce the client's address.
        forwarded: Forwarded,
        /// How the paths of requests are compared with the paths of rules. By default the
        /// comparison is exact, and paths that services interpret in different ways are refused.
        paths: Paths,
        /// Named lists of networks for the `network` of rules: networks and addresses, or
        /// `{ file: PATH }`.
        networks: Names<Networks>,
        /// The limits by name.
        limits: Names<Limit>,
        /// Which of the rules that match a request decide. By default `first_match`: only the first
        /// one.
        rules_apply: RuleOrder,
        /// Which limits apply to which requests, in this order. Requests that match no rule are not
        /// limited.
        rules: List<Rule>,
        /// Limits for callers that describe requests themselves, as Envoy does: a tree for each of
        /// their domains.
        descriptors: List<DescriptorDomain>,
        /// The responses to clients.
        answers: Answers,
        /// Load shedding: which requests are refused under overload. By default none.
        shed: Shed,
        /// The source of the key with which credentials are hashed. By default the process
        /// generates a random key when it starts.
        secret: Secret,
        /// The store of the counters. By default in memory.
        store: Store,
        /// The listeners of `tollgate serve`.
        serve: Serve,
        /// Where spans of requests are sent, for tracing. By default nowhere.
        traces: Traces,
    }
}
