//! A command-line tool that paces its own calls: at most 50 a second to each host.
//!
//! `cargo run -p tollgate --example pace`

use std::time::{Duration, Instant};

use tollgate::{Quota, RateLimiter, Refused};

#[tokio::main]
async fn main() -> Result<(), Refused> {
    let hosts = ["a.example.com", "b.example.com"];
    let elapsed = call_all(&hosts, 20).await?;
    println!("20 calls to each of {} hosts in {elapsed:?}", hosts.len());
    Ok(())
}

pub(crate) async fn call_all(hosts: &[&str], calls: u32) -> Result<Duration, Refused> {
    let limiter = RateLimiter::per_key(Quota::per_second(50).burst(5));
    let started = Instant::now();
    for call in 0..calls {
        for host in hosts {
            limiter.until_ready(*host, Duration::from_secs(10)).await?;
            println!("call {call} to {host}");
        }
    }
    Ok(started.elapsed())
}
