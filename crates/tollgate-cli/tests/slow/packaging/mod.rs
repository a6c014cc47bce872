//! Packaging: the binary's own documents, the image, the compose file, the chart, the systemd
//! units, the Debian package. The tests run the packaged files with the real programs, as long as
//! no cluster and no daemon is needed.

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
mod operations;
mod ports;
mod published;
mod release;
mod session;
mod sessions;
mod shown;
mod steps;
mod units;
mod version;
