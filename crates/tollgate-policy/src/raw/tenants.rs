//! The key `tenants`: clients with a plan or with their own quotas.

use crate::decode::{Text, keys};

keys! {
    /// Tenants: clients with a plan and quotas of their own, which administrators set while nodes
    /// run.
    struct Tenants as "tenants", requires "by" {
        /// The subject whose value is the name of the tenant. Clients must not be able to choose the
        /// value: see `trusted` of the subject.
        by: Text,
        /// The word by which `quota`, `burst` and `concurrency` limits select a number by the plan
        /// of the tenant: `quota: { by: plan, … }`. If a subject has this name, its value is the
        /// plan of tenants that have none in the table. By default `plan`.
        plan: Text,
    }
}
