//! `tollgate serve` in a browser, with Prometheus, and with loads that take time.

mod dashboard;
mod flood;
mod metrics;
mod overflow;
mod reload;
mod restart;
mod slow;
mod top;
