//! Metrics of load shedding and of the load of this node.

use tollgate::model::policy::shedding::Shedding;
use tollgate::shed::{ShedCount, Worker};
use tollgate_server::metrics::Exposition;

use super::families::{SHED, SHED_IN_FLIGHT, SHED_IN_FLIGHT_MAX, SHED_LEVEL};

/// Writes the metrics of load shedding. Writes nothing if the policy has no load shedding and no
/// request was shed before.
pub(super) fn write(page: &mut Exposition, shedding: &Shedding, worker: &Worker) {
    let is_there = shedding.fleet.is_some() || shedding.worker.is_some();
    let counts: Vec<ShedCount> = worker.counts().read().collect();
    let shed = counts.iter().flat_map(|count| {
        let of = |mode, shed| ([count.priority.name(), count.cause.name(), mode], shed);
        [of("enforce", count.shed), of("shadow", count.shadowed)]
    });
    // Only reasons with a count above zero are written, because a series for each possible reason
    // would be a page of zeros.
    page.family(&SHED, shed.filter(|(_, shed)| *shed > 0));
    if is_there {
        let status = worker.status();
        page.family(&SHED_LEVEL, [([""; 0], status.level)]);
        page.family(&SHED_IN_FLIGHT, [([""; 0], status.in_flight)]);
        page.family(&SHED_IN_FLIGHT_MAX, status.bound.map(|bound| ([""; 0], bound)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tollgate::model::Timestamp;
    use tollgate::model::policy::Priority;

    use super::*;

    fn page(text: &str, requests: usize) -> String {
        let policy = tollgate_policy::parse("shop.yaml", text).unwrap().policy;
        let worker = Arc::new(Worker::new(policy.shedding()));
        let enter = |_| worker.enter(Timestamp::EPOCH, Priority::Read);
        let _held: Vec<_> = (0..requests).map(enter).collect();
        let mut page = Exposition::default();
        write(&mut page, policy.shedding(), &worker);
        page.into_text()
    }

    const LIMITS: &str = "limits: { core: { quota: 5, window: 1h } }\nrules: [{ limits: core }]\n";

    #[test]
    fn what_is_shed_and_how_loaded_the_node_is() {
        let described = page(&format!("{LIMITS}shed: {{ worker: {{ in_flight: 2 }} }}"), 7);
        for line in [
            r#"tollgate_shed_requests_total{priority="read",cause="in_flight",mode="enforce"} 3"#,
            "tollgate_shed_level 0",
            "tollgate_shed_in_flight 4",
            "tollgate_shed_in_flight_max 2",
        ] {
            assert!(
                described.lines().any(|message| message == line),
                "{line:?} is not in {described}"
            );
        }
    }

    #[test]
    fn nothing_of_a_policy_that_sheds_nothing() {
        assert!(!page(LIMITS, 7).contains("tollgate_shed"), "{}", page(LIMITS, 7));
    }
}
