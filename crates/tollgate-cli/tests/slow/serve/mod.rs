//! `tollgate serve` in a browser, beside Prometheus, and under loads that take their time.

mod dashboard;
mod flood;
mod metrics;
mod overflow;
mod reload;
mod restart;
mod slow;
mod top;
