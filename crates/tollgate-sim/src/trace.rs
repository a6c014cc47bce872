//! The recorded events of a run, as a table and as a page.

use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The largest number of events that are recorded for a run. If there are more, one last event says
/// that the others are missing.
pub const MAX_EVENTS: usize = 200_000;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The virtual time of the event since the start, in ms.
    pub at: u64,
    /// The node or the server that the event concerns, or `world`.
    pub who: String,
    /// A description of the event.
    pub what: String,
    /// Whether the event is a fault or the end of a fault.
    pub is_fault: bool,
}

/// Records the events of a run. If the run is not traced, nothing is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    start: Instant,
    events: Option<Arc<Mutex<Vec<Event>>>>,
}

impl Trace {
    pub(crate) fn new(start: Instant, is_recording: bool) -> Self {
        Self { start, events: is_recording.then(Arc::default) }
    }

    /// Records an event. `event` returns the party that the event concerns, and a description.
    pub(crate) fn record(&self, event: impl FnOnce() -> (String, String)) {
        self.push(false, event);
    }

    /// Records a fault, or the end of a fault.
    pub(crate) fn fault(&self, event: impl FnOnce() -> (String, String)) {
        self.push(true, event);
    }

    fn push(&self, is_fault: bool, event: impl FnOnce() -> (String, String)) {
        let Some(events) = &self.events else { return };
        let mut events = events.lock();
        let at = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        if events.len() < MAX_EVENTS {
            let (who, what) = event();
            events.push(Event { at, who, what, is_fault });
        } else if events.len() == MAX_EVENTS {
            let what = format!("later events are not recorded: there are more than {MAX_EVENTS}");
            events.push(Event { at, who: "world".to_owned(), what, is_fault: true });
        }
    }

    /// Returns the recorded events in order of time. Events of the same ms are ordered by party.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.events.as_ref().map(|it| it.lock().clone()).unwrap_or_default();
        events.sort_by(|one, other| {
            let key = |event: &Event| (event.at, !event.is_fault);
            let text = |it: &Event| (it.who.clone(), it.what.clone());
            key(one).cmp(&key(other)).then_with(|| text(one).cmp(&text(other)))
        });
        events
    }
}

/// Returns the events as a table.
#[must_use]
pub fn table(events: &[Event]) -> String {
    let width = events.iter().map(|event| event.who.len()).max().unwrap_or(0);
    events.iter().fold(String::new(), |mut table, event| {
        let Event { at, who, what, is_fault } = event;
        let mark = if *is_fault { '*' } else { ' ' };
        let _ = writeln!(table, "{:>9.3} s {mark} {who:<width$}  {what}", *at as f64 / 1_000.0);
        table
    })
}

/// Returns the events as an HTML page with one column for each party. Faults are marked.
#[must_use]
pub fn page(title: &str, events: &[Event]) -> String {
    let mut parties: Vec<&str> = events.iter().map(|event| &*event.who).collect();
    parties.sort_unstable();
    parties.dedup();
    let mut page = format!(
        "<!doctype html><meta charset=utf-8><title>{0}</title><style>\
         body{{font:13px monospace}}td,th{{padding:0 1em;text-align:left;vertical-align:top}}\
         th{{position:sticky;top:0;background:#fff}}.fault{{background:#fdd}}</style>\
         <h1>{0}</h1><table><tr><th>time",
        escape(title)
    );
    for party in &parties {
        let _ = write!(page, "<th>{}", escape(party));
    }
    for event in events {
        let class = if event.is_fault { " class=fault" } else { "" };
        let _ = write!(page, "\n<tr{class}><td>{:.3}", event.at as f64 / 1_000.0);
        for party in &parties {
            let what = if *party == event.who { escape(&event.what) } else { String::new() };
            let _ = write!(page, "<td>{what}");
        }
    }
    page.push_str("\n</table>\n");
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
