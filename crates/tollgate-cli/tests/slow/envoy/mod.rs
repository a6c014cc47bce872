//! Real Envoy in front of a service, with `tollgate serve` as its rate limit service: the shipped
//! configurations, with ports and limits changed by each test.

mod clients;
mod counts;
mod failure;
mod give_back;
mod local_first;
mod process;
mod service;
mod site;
mod tollgate;
