//! Real Envoy in front of a service, with `tollgate serve` as its rate limit service: the shipped
//! configurations, whose ports and limits each test makes its own.

mod clients;
mod counts;
mod failure;
mod give_back;
mod local_first;
mod process;
mod service;
mod site;
mod tollgate;
