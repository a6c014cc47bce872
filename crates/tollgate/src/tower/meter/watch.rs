//! Finds the cost that a response reports, while the response arrives.

use std::sync::Arc;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tollgate_core::policy::metered::whole_number;
use tollgate_core::policy::{JsonPointer, Meter};
use tollgate_core::{Cost, Millis};

use super::events::{Events, Piece};
use super::follower::{Follower, Found};
use super::integer::integer;

/// Reads the values of the meters from a response that passes through the layer. The memory of a
/// `Watch` depends on the meters, not on the size of the response.
#[derive(Debug)]
pub(in crate::tower) struct Watch {
    readings: Vec<Reading>,
    form: Form,
    /// The number of bytes of the body so far. `None` before the response begins.
    bytes: Option<u64>,
}

/// One meter, and the value that this meter has read so far.
#[derive(Debug)]
struct Reading {
    meter: Arc<Meter>,
    reported: Option<Cost>,
    follower: Follower,
}

/// The format in which the body is read.
#[derive(Debug)]
enum Form {
    /// The body is not read, because no meter needs the body or its format is unknown.
    Unread,
    Json,
    Events(Events),
}

impl Watch {
    pub(super) fn new<'m>(meters: impl Iterator<Item = &'m Arc<Meter>>) -> Self {
        let reading = |meter: &Arc<Meter>| Reading {
            meter: Arc::clone(meter),
            reported: None,
            follower: Follower::default(),
        };
        Self { readings: meters.map(reading).collect(), form: Form::Unread, bytes: None }
    }

    /// Returns whether a meter reads the body. If so, the response must not be compressed.
    pub(super) fn reads_body(&self) -> bool {
        self.readings.iter().any(|reading| matches!(*reading.meter, Meter::Json { .. }))
    }

    /// Reads the header fields of the response.
    pub(super) fn answered(&mut self, headers: &HeaderMap) {
        self.bytes = Some(0);
        if self.reads_body() {
            self.form = form(headers);
        }
        for reading in &mut self.readings {
            if let Meter::Header { field } = &*reading.meter {
                let value = headers.get(&**field);
                reading.reported = value.and_then(|value| whole_number(value.as_bytes()));
            }
        }
    }

    /// Reads `data`, the next part of the body.
    pub(super) fn observe(&mut self, data: &[u8]) {
        let bytes = self.bytes.get_or_insert(0);
        *bytes = bytes.saturating_add(data.len() as u64);
        let readings = &mut self.readings;
        match &mut self.form {
            Form::Unread => {}
            Form::Json => readings.iter_mut().for_each(|reading| reading.read(data)),
            Form::Events(events) => events.push(data, &mut |piece| {
                readings.iter_mut().for_each(|reading| match piece {
                    Piece::Data(data) => reading.read(data),
                    Piece::End => reading.follower.restart(),
                });
            }),
        }
    }

    /// Returns the cost that `meter` has read from a response that has taken `time` so far. Returns
    /// `None` if the response has not reported the cost of this meter yet.
    pub(super) fn cost(&self, meter: &Meter, time: Millis) -> Option<Cost> {
        let reported = || self.readings.iter().find(|reading| *reading.meter == *meter)?.reported;
        let size = || meter.of_size(self.bytes?);
        meter.of_time(time).or_else(size).or_else(reported)
    }
}

impl Reading {
    fn read(&mut self, data: &[u8]) {
        let Meter::Json { pointer } = &*self.meter else { return };
        let reported = &mut self.reported;
        // A value that is not a whole number does not replace an earlier value.
        self.follower.push(pointer.steps(), data, &mut |found| {
            if let Found::Text(text) | Found::Number(text) = found {
                *reported = whole_number(text.as_bytes()).or(*reported);
            }
        });
    }
}

/// Returns the string or the whole number at `pointer` in a whole JSON document. A number is
/// returned in its [normal form](integer). Returns `None` for other values, if a member on the way
/// to the value is repeated, and if the document is incomplete or invalid: services differ on the
/// value in such a document.
pub(in crate::tower) fn value_at(document: &[u8], pointer: &JsonPointer) -> Option<String> {
    let (mut value, mut is_repeated) = (None, false);
    let mut follower = Follower::default();
    follower.push(pointer.steps(), document, &mut |found| match found {
        Found::Text(text) => value = Some(text.to_owned()),
        Found::Number(number) => value = integer(number),
        Found::Repeated => is_repeated = true,
    });
    value.filter(|_| follower.has_ended() && !is_repeated)
}

/// Returns whether a response body with these header fields is JSON that can be read as it arrives.
pub(in crate::tower) fn is_json(headers: &HeaderMap) -> bool {
    matches!(form(headers), Form::Json)
}

fn form(headers: &HeaderMap) -> Form {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Form::Unread;
    }
    match media_type(headers).as_deref() {
        Some("text/event-stream") => Form::Events(Events::default()),
        Some(name) if name == "application/json" || name.ends_with("+json") => Form::Json,
        _ => Form::Unread,
    }
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|name| name.trim().to_ascii_lowercase())
}
