//! `tollgate check`: validates a policy, explains it, and follows a request through it.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use tollgate::HashKey;
use tollgate::core::{Headers, RequestAttributes};
use tollgate_policy::{explain, trace};

use crate::failure::Failure;
use crate::limiter;

/// Validate a policy, explain it, and show what a request would meet
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Follow a request of this method; GET if another part of a request is given
    #[arg(long, value_name = "METHOD", help_heading = "A request")]
    method: Option<String>,
    /// Follow a request for this path; / if another part of a request is given
    #[arg(long, value_name = "PATH", help_heading = "A request")]
    path: Option<String>,
    /// With this header; may be given more than once
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = "A request")]
    header: Vec<Header>,
    /// Asking for this host
    #[arg(long, value_name = "HOST", help_heading = "A request")]
    host: Option<String>,
    /// From this address
    #[arg(long, value_name = "ADDR", help_heading = "A request")]
    from: Option<IpAddr>,
}

#[derive(Clone, Debug)]
struct Header {
    name: String,
    value: String,
}

fn header(text: &str) -> Result<Header, String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Header { name: name.trim().to_lowercase(), value: value.trim().to_owned() })
        }
        _ => Err("a header is written as 'name: value'".to_owned()),
    }
}

struct Fields<'a>(&'a [Header]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        let mut of_name = self.0.iter().filter(|header| header.name == name);
        of_name.nth(index).map(|header| header.value.as_bytes())
    }
}

impl Flags {
    fn names_a_request(&self) -> bool {
        self.method.is_some()
            || self.path.is_some()
            || self.host.is_some()
            || self.from.is_some()
            || !self.header.is_empty()
    }
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let loaded = limiter::load(&flags.policy)?;
    if !flags.names_a_request() {
        print!("{}", explain(&loaded));
        return Ok(());
    }
    let target = flags.path.as_deref().unwrap_or("/");
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let fields = Fields(&flags.header);
    let host = fields.value("host", 0).and_then(|host| std::str::from_utf8(host).ok());
    let facts = RequestAttributes {
        method: flags.method.as_deref().unwrap_or("GET"),
        path,
        host: flags.host.as_deref().or(host),
        peer: flags.from,
        headers: &fields,
    };
    print!("{}", trace(&loaded.policy, &facts, &HashKey::random()));
    Ok(())
}
