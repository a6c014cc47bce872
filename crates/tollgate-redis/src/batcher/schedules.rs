//! Tests in which several threads use the queue and the slots of one batcher, with many
//! interleavings of the threads.
//!
//! `shuttle` chooses the interleavings. This module compiles only with `--cfg shuttle`:
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" cargo test --profile schedules -p tollgate-redis --lib schedules
//! ```

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use shuttle::thread;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_core::Timestamp;

use super::batch::Waiter;
use super::pacing::Pacing;
use super::queue::{QueueSender, queue};
use super::route::{Priority, Route};
use super::{BatcherLimits, CALLS_IN_FLIGHT};
use crate::codec::{Codec, ErrorAction};
use crate::error::StepError;
use crate::offset::ClockAt;

/// The number of interleavings of the threads that each test tries.
const SCHEDULES: usize = 20_000;

/// A codec for jobs that are numbers. The number of a job is also the size of the job in bytes. The
/// tests queue these jobs and do not send them.
struct Sizes;

impl Codec for Sizes {
    type Job = usize;
    type Answer = ();

    fn encode(&self, _jobs: &[usize], _deadline: Option<Timestamp>) -> Cmd {
        redis::cmd("PING")
    }

    fn decode(&self, jobs: &[usize], _reply: Value) -> Vec<Result<(), StepError>> {
        jobs.iter().map(|_| Ok(())).collect()
    }

    fn wrote(&self, _jobs: &[usize], _answers: &[Result<(), StepError>]) -> bool {
        false
    }

    fn clock(&self, _reply: &Value) -> Option<Timestamp> {
        None
    }

    fn retime(&self, _jobs: &mut [usize], _shard: ClockAt) {}

    fn job_bytes(&self, job: &usize) -> usize {
        *job
    }

    async fn load(&self, _connection: &mut MultiplexedConnection) -> RedisResult<()> {
        Ok(())
    }

    fn error_action(&self, _error: &RedisError) -> ErrorAction {
        ErrorAction::Nothing
    }
}

fn put(queue: &QueueSender<Sizes>, bytes: usize) -> bool {
    let (answer, _) = oneshot::channel();
    let waiter = Waiter::new(answer, Instant::now(), Route::Any, Priority::Normal);
    queue.put(bytes, bytes, waiter).is_ok()
}

/// Every job that fits is queued, every queued job is taken once, and the count of bytes returns to
/// 0.
#[test]
fn a_queue_takes_and_returns_every_job_within_its_bounds() {
    let bounds = BatcherLimits { waiting: 4, waiting_bytes: 100, ..BatcherLimits::default() };
    let limits = BatcherLimits { call_bytes: 60, ..bounds };
    shuttle::check_random(
        move || {
            let (sender, mut receiver) = queue::<Sizes>(limits);
            let sender = Arc::new(sender);
            let threads: Vec<_> = [[30, 40], [50, 60], [20, 10]]
                .into_iter()
                .map(|jobs| {
                    let sender = Arc::clone(&sender);
                    thread::spawn(move || {
                        jobs.into_iter().filter(|bytes| put(&sender, *bytes)).sum::<usize>()
                    })
                })
                .collect();
            let taker = thread::spawn(move || {
                let mut taken = 0;
                for _ in 0..3 {
                    let jobs = receiver.take();
                    let bytes = jobs.iter().flat_map(|batch| batch.jobs()).sum::<usize>();
                    assert!(bytes <= 60, "{bytes} bytes in one call");
                    taken += bytes;
                    thread::yield_now();
                }
                (taken, receiver)
            });
            let queued: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            let (mut taken, mut receiver) = taker.join().unwrap();
            while let Some(batch) = receiver.take() {
                taken += batch.jobs().iter().sum::<usize>();
            }
            assert_eq!((taken, sender.is_empty()), (queued, true));
            assert!(put(&sender, 100), "all bytes are free again");
        },
        SCHEDULES,
    );
}

/// Calls that begin, become overdue and end in any order never use more slots than the limit, and
/// every call returns its slot.
#[test]
fn slots_of_calls_are_bounded_and_all_return() {
    shuttle::check_random(
        || {
            let pacing = Arc::new(Pacing::new(Duration::from_secs(60)));
            pacing.observe(Duration::from_micros(500));
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let pacing = Arc::clone(&pacing);
                    thread::spawn(move || {
                        for turn in 0..2 {
                            let Some(mut slot) = pacing.try_begin() else { continue };
                            let (on_time, by_callers) = pacing.in_flight();
                            assert!(on_time <= pacing.allowed(), "{on_time} on time");
                            assert!(by_callers <= CALLS_IN_FLIGHT, "{by_callers} by callers");
                            if number == turn {
                                slot.overdue();
                                thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(pacing.in_flight(), (0, 0));
        },
        SCHEDULES,
    );
}
