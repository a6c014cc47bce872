//! What is installed: the binary's own papers, the image, the compose file, the chart, the units, the package. What
//! they say is done, with the real programs, as far as that needs no cluster and no daemon.

mod chart;
mod completions;
mod compose;
mod container;
mod debian;
mod envoy;
mod files;
mod guide;
mod health;
mod helm;
mod manual;
mod node;
mod ports;
mod session;
mod sessions;
mod shown;
mod steps;
mod units;
mod version;
