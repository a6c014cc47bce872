//! Rollouts and shadow stores: real processes with real servers.

mod disagree;
mod metrics;
mod page;
mod shadow;
mod site;
mod status;
mod there_and_back;
