//! Limits move between stores, and stores are compared: real processes over real servers.

mod disagree;
mod metrics;
mod page;
mod shadow;
mod site;
mod status;
mod there_and_back;
