//! Doors are opened, each with what is behind it.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate::overrides::Keep;
use tollgate::store::Dial;
use tollgate_backend::{Backend, PolicyFile};
use tollgate_server::{
    Access, ConnectionLimits, GrpcDoor, HttpDoor, HttpOptions, Listener, Port, RespDoor,
    RespSettings, Served,
};

use super::doors::{Browsers, Door, Doors, Kind};
use super::{status, subjects, what_if};
use crate::cmd::Failure;
use crate::metrics::{Counted, CountedDoor};
use crate::policy_file;

/// A door that listens, and lets nobody in yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    kind: Kind,
    access: Access,
    browsers: Browsers,
    listener: Listener,
}

/// Opens the sockets of all `doors`. Needs a tokio runtime.
pub(crate) fn listeners(doors: &Doors, port: Port) -> Result<Vec<Opened>, Failure> {
    doors.0.iter().map(|door| listener(door, port)).collect()
}

fn listener(door: &Door, port: Port) -> Result<Opened, Failure> {
    let opened = Listener::open(&door.listen, port);
    let name = door.kind.name();
    let mut listener = opened.map_err(|error| format!("the {name} door: {error}"))?;
    let address = listener.local_address()?;
    if let Some(tls) = &door.tls {
        listener = listener.with_tls(tls.clone());
    }
    let (kind, access, browsers) = (door.kind, door.access.clone(), door.browsers.clone());
    Ok(Opened { name, address, kind, access, browsers, listener })
}

/// What answers behind the doors.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) limiter: Arc<Limiter<Backend>>,
    pub(crate) file: Arc<PolicyFile>,
    pub(crate) counted: Counted,
    pub(crate) overrides: Arc<dyn Keep>,
    /// The limits whose subjects administrators see in clear.
    pub(crate) revealed: Arc<[Box<str>]>,
}

/// Puts behind each door what answers there.
pub(crate) fn serve(opened: Vec<Opened>, behind: &Behind) -> Vec<Served> {
    let (served, doors) = opened.into_iter().map(|door| behind.answer(door)).unzip();
    behind.counted.set_doors(doors);
    served
}

impl Behind {
    fn answer(&self, door: Opened) -> (Served, CountedDoor) {
        let limits = ConnectionLimits::default();
        let Opened { name, kind, access, browsers, listener, .. } = door;
        let limiter = Arc::clone(&self.limiter);
        let (served, latency) = match kind {
            Kind::Http => {
                let options = HttpOptions { access, ..HttpOptions::default() };
                let latency = Arc::clone(&options.latency);
                let door = HttpDoor::new(limiter, options, limits);
                (Served::new(name, listener, limits, door), Some(latency))
            }
            Kind::Admin => {
                // Who runs it may ask for verdicts too; that is no traffic.
                let door = HttpDoor::new(limiter, self.administration(access, browsers), limits);
                (Served::new(name, listener, limits, door), None)
            }
            Kind::Resp => {
                let settings = RespSettings { access, limits };
                let door = RespDoor::new(limiter, settings);
                let latency = door.latency();
                (Served::new(name, listener, limits, door), Some(latency))
            }
            Kind::Grpc => {
                let door = GrpcDoor::new(limiter, access, limits);
                let latency = door.latency();
                (Served::new(name, listener, limits, door), Some(latency))
            }
        };
        let places = served.places();
        (served, CountedDoor { places, latency })
    }

    /// The door of those who run it.
    fn administration(&self, access: Access, browsers: Browsers) -> HttpOptions {
        let (limiter, file) = (|| Arc::clone(&self.limiter), || Arc::clone(&self.file));
        HttpOptions {
            admin: Some(access.clone()),
            access,
            reload: Some(policy_file::reload(file())),
            status: Some(status::of(limiter(), file())),
            metrics: Some(self.counted.metrics(limiter(), file())),
            rollout: rollout(self.limiter.store()),
            simulate: Some(what_if::of(limiter())),
            dashboard: browsers.dashboard,
            hosts: browsers.hosts,
            overrides: Some(Arc::clone(&self.overrides)),
            top: Some(self.counted.top()),
            subjects: Some(subjects::of(limiter())),
            revealed: Arc::clone(&self.revealed),
            ..HttpOptions::default()
        }
    }
}

/// What administrators may turn.
fn rollout(store: &Backend) -> Option<Dial> {
    match store {
        Backend::Rollout(moving) => Some(moving.dial().clone()),
        _ => None,
    }
}
