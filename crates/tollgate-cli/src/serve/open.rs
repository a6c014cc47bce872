//! Doors are opened, each with what is behind it.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate::store::Dial;
use tollgate_backend::{Backend, PolicyFile};
use tollgate_server::{
    Access, ConnectionLimits, GrpcDoor, HttpDoor, HttpOptions, Listener, Port, RespDoor,
    RespSettings, Served,
};

use super::doors::{Door, Doors, Kind};
use super::status;
use crate::cmd::Failure;
use crate::metrics::{Counted, CountedDoor};
use crate::policy_file;

/// Whether everybody may enter a door that other machines reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    Refused,
    Allowed,
}

/// A door that listens, and lets nobody in yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    kind: Kind,
    access: Access,
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
    Ok(Opened { name, address, kind: door.kind, access: door.access.clone(), listener })
}

/// Puts behind each door what answers there.
pub(crate) fn serve(
    opened: Vec<Opened>,
    limiter: &Arc<Limiter<Backend>>,
    file: &Arc<PolicyFile>,
    counted: &Counted,
) -> Vec<Served> {
    let opened = opened.into_iter().map(|door| behind(door, limiter, file, counted));
    let (served, doors) = opened.unzip();
    counted.set_doors(doors);
    served
}

fn behind(
    door: Opened,
    limiter: &Arc<Limiter<Backend>>,
    file: &Arc<PolicyFile>,
    counted: &Counted,
) -> (Served, CountedDoor) {
    let limits = ConnectionLimits::default();
    let Opened { name, kind, access, listener, .. } = door;
    let limiter = Arc::clone(limiter);
    let (served, latency) = match kind {
        Kind::Http | Kind::Admin => {
            let is_admin = kind == Kind::Admin;
            let options = HttpOptions {
                admin: is_admin.then(|| access.clone()),
                reload: is_admin.then(|| policy_file::reload(Arc::clone(file))),
                status: is_admin.then(|| status::of(Arc::clone(&limiter), Arc::clone(file))),
                metrics: is_admin.then(|| counted.metrics(Arc::clone(&limiter), Arc::clone(file))),
                access,
                rollout: rollout(kind, limiter.store()),
                ..HttpOptions::default()
            };
            // Who runs it may ask for verdicts too; that is no traffic.
            let latency = (!is_admin).then(|| Arc::clone(&options.latency));
            let door = HttpDoor::new(limiter, options, limits);
            (Served::new(name, listener, limits, door), latency)
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

/// What administrators may turn.
fn rollout(kind: Kind, store: &Backend) -> Option<Dial> {
    match (kind, store) {
        (Kind::Admin, Backend::Rollout(moving)) => Some(moving.dial().clone()),
        _ => None,
    }
}
