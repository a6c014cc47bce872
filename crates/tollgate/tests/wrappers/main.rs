//! The wrappers around stores: what each keeps, and how much it weakens.

mod atomic;
mod cancel;
mod carry;
mod census;
mod chaos;
mod conformance;
mod deadline;
mod fallback;
mod faulty;
mod history;
mod leased;
mod leased_fleet;
mod leased_history;
mod looks;
mod promoted;
mod refused;
mod repair;
mod repair_homes;
mod rollout;
mod setup;
mod shadow;
mod sharded;
mod share;
mod timed;
