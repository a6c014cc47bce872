//! Simulated clusters: nodes, servers, a network and faults in one thread, generated from one seed.
//!
//! A world is one simulated cluster. It consists of nodes with the shipped limiter and the shipped
//! Redis store, and of servers that run the step of `tollgate-module` behind a model of Redis. Time
//! is virtual, and the network is in memory. [`Plan::of`] generates a world from a seed, and
//! [`run`] runs it. The same seed always gives the same world.
//!
//! | module | content |
//! | --- | --- |
//! | [`plan`] | from a seed to a world: its size, its clocks, its faults |
//! | `policy` | the policy files of the nodes |
//! | `network` | streams between nodes and servers |
//! | `server` | the model of a Redis server |
//! | `sentinel` | the model of a sentinel |
//! | `cluster` | all servers: connections, replication, faults |
//! | `node` | one node with the shipped limiter and store |
//! | `overrides` | the overrides of a node |
//! | `records` | the recorded store calls of the nodes |
//! | `clients` | the load |
//! | `phase` | the phases of a run |
//! | `world` | runs a world through its phases |
//! | [`judge`] | what every world must satisfy |
//! | [`shrink`](mod@shrink) | the faults that a failure needs |
//! | [`trace`] | the events of a run as a table and as a page |

mod clients;
mod clock;
mod cluster;
pub mod judge;
mod network;
mod node;
mod overrides;
mod phase;
pub mod plan;
mod policy;
mod records;
mod sentinel;
mod server;
pub mod shrink;
pub mod trace;
mod world;

// The files of the server module are included, because its crate is a plug-in of a server and
// cannot be a dependency.
#[path = "../../tollgate-module/src/answer.rs"]
mod answer;
#[path = "../../tollgate-module/src/buffers.rs"]
#[allow(dead_code, reason = "the model has no tables")]
mod buffers;
#[path = "../../tollgate-module/src/charges.rs"]
mod charges;
#[path = "../../tollgate-module/src/error.rs"]
#[allow(dead_code, reason = "some errors are those of the server interface")]
mod error;
#[path = "../../tollgate-module/src/location_state.rs"]
mod location_state;
#[path = "../../tollgate-module/src/reader.rs"]
mod reader;
#[path = "../../tollgate-module/src/request.rs"]
mod request;
#[path = "../../tollgate-module/src/rule.rs"]
mod rule;
#[path = "../../tollgate-module/src/step.rs"]
mod step;
#[path = "../../tollgate-module/src/stored.rs"]
#[allow(dead_code, reason = "the model has no tables, and no values of other types")]
mod stored;
#[path = "../../tollgate-module/src/transfer.rs"]
mod transfer;
// `stored` writes integers with this crate.
use itoa as _;

pub use plan::{Kind, Plan};
pub use shrink::shrink;
pub use world::{Outcome, replay_command, run};
