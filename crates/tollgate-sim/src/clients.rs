//! The load of a simulated world: callers that send requests of changing subjects.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_conformance::Random;

use crate::judge::Judge;
use crate::node::{Answer, Fleet};
use crate::phase::Phase;
use crate::plan::{OverrideEffect, SUBJECT_PERIOD};
use crate::trace::Trace;

/// How often callers send requests, and how long they use a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The longest pause of a caller between two requests, in ms.
    pub(crate) pause: u64,
    /// The longest pause of a caller after a refusal, in ms. It applies only if it is longer than
    /// `pause`.
    pub(crate) pause_after_refusal: u64,
    /// The time for which callers send requests of a subject, in ms.
    pub(crate) subject_life: u64,
}

/// A caller of one node in one phase of a run, with the parts of the world that it uses.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) trace: Trace,
    pub(crate) node: usize,
    pub(crate) phase: Phase,
    /// The time at which the phase of the run began. The field `until` is the time at which the
    /// phase ends.
    pub(crate) begun: Instant,
    pub(crate) until: Instant,
}

impl Client {
    /// Sends requests one after another until the phase ends. `load` determines the pauses.
    pub(crate) async fn call(self, mut random: Random, load: Load) {
        let others = load.subject_life / SUBJECT_PERIOD;
        let mut subjects = Vec::new();
        while Instant::now() < self.until {
            let newest = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(0);
            let newest = newest / SUBJECT_PERIOD;
            let number = if random.chance(70) {
                newest
            } else {
                random.within(newest.saturating_sub(others)..=newest)
            };
            while subjects.len() as u64 <= number {
                subjects.push(self.phase.subject(subjects.len() as u64));
            }
            let subject = &subjects[number as usize];
            let path = random.one_of(&["/long", "/long", "/both", "/short"]);
            let is_refused = self.check(subject, path).await.is_some();
            let least = if is_refused { load.pause_after_refusal } else { 0 };
            let pause = load.pause.max(least);
            sleep(Duration::from_millis(random.within(0..=pause))).await;
        }
    }

    /// Sends `calls` requests of the newest `subjects` subjects, all at the same moment, each from a
    /// caller of its own.
    pub(crate) fn burst(&self, calls: usize, subjects: u64, callers: &mut JoinSet<()>) {
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(0);
        let newest = millis / SUBJECT_PERIOD;
        let first = newest.saturating_sub(subjects - 1);
        for (number, path) in (0..calls).zip(["/long", "/both", "/long", "/short"].iter().cycle()) {
            let number = first + number as u64 % (newest - first + 1);
            let (client, subject) = (self.clone(), self.phase.subject(number));
            callers.spawn(async move {
                client.check(&subject, path).await;
            });
        }
    }

    /// Uses up a limit, and then waits for the time that the refusal states, and for `tolerance` more.
    /// Reports a violation if the next request is not admitted.
    pub(crate) async fn retry(self, tolerance: Duration) {
        let subject = format!("{:?}-retry-{}", self.phase, self.node);
        while Instant::now() < self.until {
            let Some(ready_at) = self.check(&subject, "/short").await else { continue };
            while let Some(now) = self.fleet.now(self.node)
                && now < ready_at
            {
                sleep(Duration::from_millis(ready_at.since(now).get())).await;
            }
            if !tolerance.is_zero() {
                sleep(tolerance).await;
            }
            if self.check(&subject, "/short").await.is_some() {
                self.judge.refused_after_wait(self.node, &subject);
                // If the named time has always passed, no other wait lets the world end.
                sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Sends one request. If the request is refused, returns the time from which a retry should be
    /// admitted.
    async fn check(&self, subject: &str, path: &'static str) -> Option<tollgate_core::Timestamp> {
        let answer = self.fleet.check(self.node, subject, path).await;
        self.judge.record((self.node, self.phase), subject, path, answer);
        self.trace.record(|| {
            let what = answer.map_or_else(
                || format!("{subject} {path}: the node ended"),
                |answer| {
                    let word = if answer.is_admitted { "admitted" } else { "refused" };
                    let (source, waited) = (answer.source, answer.waited.as_millis());
                    let effect = match answer.effect {
                        OverrideEffect::Quota(_) => String::new(),
                        _ if path == "/short" => String::new(),
                        effect => format!(" ({effect:?})"),
                    };
                    format!("{subject} {path}: {word} by {source:?}{effect} after {waited} ms")
                },
            );
            (format!("node {}", self.node), what)
        });
        if answer.is_none() {
            // A node that is not running refuses connections, so a caller tries again later.
            sleep(Duration::from_millis(10)).await;
        }
        answer.filter(|answer| !answer.is_admitted)?.ready_at
    }

    /// Sends requests for `subject` until one is refused or an override lifts the limit, but at
    /// most `at_most` requests.
    pub(crate) async fn drain(&self, subject: &str, at_most: u64) {
        for _ in 0..at_most {
            let answer = self.fleet.check(self.node, subject, "/long").await;
            self.judge.record((self.node, self.phase), subject, "/long", answer);
            let is_limited = |answer: &Answer| matches!(answer.effect, OverrideEffect::Quota(_));
            if answer.is_some_and(|answer| !answer.is_admitted || !is_limited(&answer)) {
                return;
            }
        }
    }
}
