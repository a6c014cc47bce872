//! Counts over time, in steps that widen for longer logs.

use serde::Serialize;

use super::super::utc;
use super::{Counts, RequestOutcome};

/// The most points of a timeline.
const POINTS_MAX: u64 = 120;

/// The possible steps in seconds. Each step divides the next one, so points can be combined.
const STEPS: [u64; 14] =
    [1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 604_800];

/// The requests of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Point {
    /// The step's start, in milliseconds since the epoch.
    #[serde(serialize_with = "utc::serialize")]
    pub(crate) time: u64,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

/// Counts over time without gaps. There are at most [`POINTS_MAX`] points, and each point covers
/// one step.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timeline {
    /// The milliseconds from one point to the next.
    #[serde(rename = "step_ms")]
    step: u64,
    points: Vec<Point>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { step: STEPS[0] * 1000, points: Vec::new() }
    }
}

impl Timeline {
    /// Counts a request. Requests must be counted in the order of their times.
    pub(super) fn add(&mut self, now: u64, outcome: RequestOutcome) {
        if let Some(last) = self.points.last_mut()
            && (last.time..last.time + self.step).contains(&now)
        {
            return last.counts.add(outcome);
        }
        let first = self.points.first().map_or(now, |point| point.time);
        while now / self.step - first / self.step >= POINTS_MAX {
            self.widen();
        }
        let time = now - now % self.step;
        while self.points.last().is_none_or(|last| last.time < time) {
            let next = self.points.last().map_or(time, |last| last.time + self.step);
            self.points.push(Point { time: next, ..Point::default() });
        }
        if let Some(last) = self.points.last_mut() {
            last.counts.add(outcome);
        }
    }

    /// Returns the milliseconds from one point to the next.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Returns the points in the order of their times.
    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    fn widen(&mut self) {
        let next = STEPS.iter().map(|seconds| seconds * 1000).find(|step| *step > self.step);
        self.step = next.unwrap_or(self.step * 2);
        let mut joined: Vec<Point> = Vec::with_capacity(self.points.len());
        for point in self.points.drain(..) {
            let time = point.time - point.time % self.step;
            match joined.last_mut() {
                Some(last) if last.time == time => last.counts = last.counts.plus(point.counts),
                _ => joined.push(Point { time, ..point }),
            }
        }
        self.points = joined;
    }
}

impl Counts {
    /// Returns the sum of both counts.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            admitted: self.admitted + other.admitted,
            refused: self.refused + other.refused,
            refunded: self.refunded + other.refunded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_steps_are_there_and_empty() {
        let mut timeline = Timeline::default();
        for now in [1_500, 1_999, 4_000] {
            timeline.add(now, RequestOutcome::Admitted);
        }
        let seen: Vec<_> =
            timeline.points().iter().map(|point| (point.time, point.counts.requests)).collect();
        assert_eq!(seen, [(1000, 2), (2000, 0), (3000, 0), (4000, 1)]);
    }

    #[test]
    fn steps_widen_and_lose_no_request() {
        let mut timeline = Timeline::default();
        let mut now = 1_431_857_103_000;
        for n in 0..5_000 {
            now += n * 7_919;
            timeline.add(
                now,
                if n % 3 == 0 { RequestOutcome::Refused } else { RequestOutcome::Refunded },
            );
            let points = timeline.points();
            assert!(points.len() as u64 <= POINTS_MAX);
            assert!(points.iter().all(|point| point.time % timeline.step() == 0));
            assert!(points.windows(2).all(|pair| pair[1].time - pair[0].time == timeline.step()));
        }
        let sum =
            timeline.points().iter().fold(Counts::default(), |sum, point| sum.plus(point.counts));
        assert_eq!(
            sum,
            Counts { requests: 5_000, admitted: 3_333, refused: 1_667, refunded: 3_333 }
        );
    }

    #[test]
    fn a_time_in_the_far_future_widens_without_end_or_panic() {
        let mut timeline = Timeline::default();
        timeline.add(0, RequestOutcome::Admitted);
        timeline.add((1 << 53) - 1, RequestOutcome::Admitted);
        assert!(timeline.points().len() as u64 <= POINTS_MAX);
        assert_eq!(timeline.points().iter().map(|point| point.counts.requests).sum::<u64>(), 2);
    }
}
