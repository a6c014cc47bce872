use super::*;

const FRESH: Duration = Duration::from_secs(3);

/// An election with a manual clock, which gives the times of the reports.
struct Scene {
    election: PrimaryElection,
    now: Instant,
}

impl Scene {
    fn of_sentinels(count: usize) -> Self {
        Self { election: PrimaryElection::new(count, FRESH), now: Instant::now() }
    }

    fn leads(&mut self, address: &str, id: &str, origin: Option<&str>) {
        let server_report = Replication::leading(id, 100, origin.map(|id| (id, 50)));
        let mark = EpochMark::Unknown;
        self.election.record_report(address, Role::Primary, Some(&server_report), mark, self.now);
    }

    fn follows(&mut self, address: &str, id: &str) {
        let server_report = Replication::following(id, 100);
        let mark = EpochMark::Unknown;
        self.election.record_report(address, Role::Replica, Some(&server_report), mark, self.now);
    }

    fn vote(&mut self, sentinel: &str, primary: &str, epoch: u64, certainty: Confidence) {
        let vote = SentinelVote {
            primary: primary.into(),
            epoch,
            certainty,
            origin: SentinelOrigin::Configured,
            at: self.now,
        };
        self.election.record_vote(sentinel, vote);
    }

    fn passes(&mut self, time: Duration) {
        self.now += time;
    }

    fn deposed(&self) -> Vec<(&str, &str)> {
        self.election.deposed().iter().map(|(server, by)| (&**server, &**by)).collect()
    }
}

#[test]
fn who_goes_on_from_anothers_stream_took_over() {
    for first in ["old", "new"] {
        let mut scene = Scene::of_sentinels(0);
        match first {
            "old" => {
                scene.leads("a", "x", None);
                scene.leads("b", "y", Some("x"));
            }
            _ => {
                scene.leads("b", "y", Some("x"));
                scene.leads("a", "x", None);
            }
        }
        assert_eq!(scene.deposed(), [("a", "b")], "{first} first");
        // The old primary stays deposed when the new primary stops reporting.
        scene.passes(FRESH * 2);
        scene.leads("a", "x", None);
        assert_eq!(scene.deposed(), [("a", "b")]);
        scene.follows("a", "y");
        assert_eq!(scene.deposed(), []);
    }
}

#[test]
fn unrelated_streams_report_nothing() {
    let mut scene = Scene::of_sentinels(0);
    scene.leads("a", "x", None);
    scene.leads("b", "y", Some("z"));
    scene.follows("c", "x");
    assert_eq!(scene.deposed(), []);
}

#[test]
fn who_took_over_and_gave_way_again_leaves_the_other_in_its_place() {
    let mut scene = Scene::of_sentinels(0);
    scene.leads("a", "x", None);
    scene.leads("b", "y", Some("x"));
    scene.follows("b", "z");
    assert_eq!(scene.deposed(), [("a", "b")], "it follows somebody else");
    scene.follows("b", "x");
    assert_eq!(scene.deposed(), []);
}

#[test]
fn the_latest_epoch_counts_once_the_server_bears_it_out() {
    let mut scene = Scene::of_sentinels(3);
    scene.leads("a", "x", None);
    scene.follows("b", "x");
    for sentinel in ["1", "2", "3"] {
        scene.vote(sentinel, "a", 5, Confidence::Confirmed);
    }
    scene.vote("1", "b", 6, Confidence::Confirmed);
    assert_eq!(scene.deposed(), [], "it says so, and the server does not");
    scene.leads("b", "y", Some("x"));
    assert_eq!(scene.deposed(), [("a", "b")]);
}

#[test]
fn most_sentinels_are_believed_of_a_server_out_of_sight() {
    let mut scene = Scene::of_sentinels(3);
    scene.leads("a", "x", None);
    scene.vote("1", "b", 6, Confidence::Confirmed);
    assert_eq!(scene.deposed(), []);
    scene.vote("2", "b", 6, Confidence::Confirmed);
    assert_eq!(scene.deposed(), [("a", "b")]);
    scene.vote("1", "a", 7, Confidence::Confirmed);
    assert_eq!(scene.deposed(), [], "who is announced is charged again");
}

#[test]
fn a_lie_moves_nobody() {
    for (what, liar) in [("nobody", "nowhere"), ("a stranger", "c"), ("the old one", "a")] {
        let mut scene = Scene::of_sentinels(3);
        scene.leads("a", "x", None);
        scene.leads("c", "w", None);
        scene.leads("b", "y", Some("x"));
        scene.vote("1", liar, 1_000, Confidence::Confirmed);
        scene.vote("2", "b", 6, Confidence::Confirmed);
        scene.vote("3", "b", 6, Confidence::Confirmed);
        assert_eq!(scene.deposed(), [("a", "b"), ("c", "b")], "{what}");
        assert_eq!(scene.election.named(scene.now), Some("b"), "{what}");
    }
}

#[test]
fn sentinels_that_have_not_heard_do_not_outweigh_a_promotion() {
    let mut scene = Scene::of_sentinels(3);
    for sentinel in ["1", "2", "3"] {
        scene.vote(sentinel, "a", 5, Confidence::Confirmed);
    }
    scene.leads("a", "x", None);
    scene.leads("b", "y", Some("x"));
    assert_eq!(scene.deposed(), [("a", "b")]);
}

#[test]
fn sentinels_in_doubt_do_not_outweigh_a_promotion() {
    let mut scene = Scene::of_sentinels(3);
    for sentinel in ["1", "2", "3"] {
        scene.vote(sentinel, "a", 5, Confidence::Suspect);
    }
    scene.leads("a", "x", None);
    scene.leads("b", "y", Some("x"));
    assert_eq!(scene.deposed(), [("a", "b")]);
}

#[test]
fn what_was_said_long_ago_counts_no_more() {
    let mut scene = Scene::of_sentinels(3);
    scene.vote("1", "a", 9, Confidence::Confirmed);
    scene.vote("2", "a", 9, Confidence::Confirmed);
    assert_eq!(scene.election.named(scene.now), Some("a"));
    scene.passes(FRESH + Duration::from_millis(1));
    assert_eq!(scene.election.named(scene.now), None);
    scene.leads("a", "x", None);
    scene.leads("b", "y", Some("x"));
    assert_eq!(scene.deposed(), [("a", "b")]);
}

/// Two primaries with replication streams that are not related.
fn two_primaries(one: EpochMark, two: EpochMark) -> Scene {
    let mut scene = Scene::of_sentinels(0);
    scene.election.choose_by_mark(["one".into(), "two".into()].into());
    for (address, mark) in [("two", two), ("one", one)] {
        let report = Replication::leading(address, 100, None);
        scene.election.record_report(address, Role::Primary, Some(&report), mark, scene.now);
    }
    scene
}

#[test]
fn the_mark_chooses_and_then_the_configuration() {
    use EpochMark::{Missing, Present, Unknown};
    for (one, two, loser) in [
        (Missing, Missing, "two"),
        (Missing, Present(0), "one"),
        (Present(0), Missing, "two"),
        (Present(1), Present(1), "two"),
        (Present(1), Present(2), "one"),
        (Unknown, Unknown, "two"),
    ] {
        let scene = two_primaries(one, two);
        let losers: Vec<&str> = scene.election.outranked().keys().map(|it| &**it).collect();
        assert_eq!(losers, [loser], "{one:?} {two:?}");
        assert_eq!(scene.election.reachable_leaders(scene.now), ["one", "two"]);
    }
}

#[test]
fn an_empty_server_is_chosen_once_no_other_answers() {
    let mut scene = two_primaries(EpochMark::Missing, EpochMark::Present(3));
    assert!(scene.election.outranked().contains_key("one"));
    assert_eq!(scene.election.next_epoch(), Some(4));
    scene.election.record_unreachable("two", scene.now);
    assert!(scene.election.outranked().is_empty());
    assert_eq!(scene.election.reachable_leaders(scene.now), ["one"]);
}

#[test]
fn a_node_that_was_stopped_does_not_choose_an_empty_server_before_it_has_queried_the_other() {
    let mut scene = two_primaries(EpochMark::Missing, EpochMark::Present(3));
    scene.passes(FRESH * 10);
    let report = Replication::leading("one", 100, None);
    let (role, mark) = (Role::Primary, EpochMark::Missing);
    scene.election.record_report("one", role, Some(&report), mark, scene.now);
    assert!(scene.election.outranked().contains_key("one"), "the report of \"two\" is only old");
    scene.election.record_unreachable("two", scene.now);
    assert!(scene.election.outranked().is_empty(), "\"two\" does not answer");
}
