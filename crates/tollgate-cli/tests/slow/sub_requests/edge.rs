//! A proxy in front of a service with the configurations in `deploy/`, which sends sub-requests to
//! Tollgate.

use std::fs::{File, read_to_string, write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

/// The number of attempts to get a port, which another process may take first.
const PORT_TRIES: usize = 5;

/// The most checks whether the proxy listens, and the time between two checks.
const READY_TRIES: usize = 2_000;
const READY_PAUSE: Duration = Duration::from_millis(10);

/// The kind of proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx,
    HaProxy,
}

/// The changes of a test to the configuration: texts and their replacements.
pub(crate) type Changes<'a> = &'a [(&'a str, &'a str)];

/// A running proxy, which is stopped when this value is dropped.
pub(crate) struct Edge {
    child: Child,
    pub(crate) address: SocketAddr,
    folder: TempDir,
}

impl Edge {
    /// Starts the proxy in front of `service`, with sub-requests to `tollgate`.
    pub(crate) fn start(
        kind: Kind,
        service: SocketAddr,
        tollgate: SocketAddr,
        changes: Changes<'_>,
    ) -> Self {
        for _ in 0..PORT_TRIES {
            let folder = TempDir::new().unwrap();
            let address = free_address();
            let addresses = [("127.0.0.1:8080", address), ("127.0.0.1:9000", service)];
            let addresses = [&addresses[..], &[("127.0.0.1:8081", tollgate)]].concat();
            let mut command = match kind {
                Kind::Nginx => nginx(folder.path(), &addresses, changes),
                Kind::HaProxy => haproxy(folder.path(), &addresses, changes),
            };
            let log = File::create(folder.path().join("log")).unwrap();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
            let child = command.spawn().unwrap_or_else(|error| {
                let program = command.get_program().display();
                panic!("missing program: {program} ({error}); ./test installs it")
            });
            let mut edge = Self { child, address, folder };
            if edge.listens() {
                return edge;
            }
        }
        panic!("{kind:?} did not start on any of {PORT_TRIES} ports");
    }

    fn listens(&mut self) -> bool {
        for _ in 0..READY_TRIES {
            if let Some(status) = self.child.try_wait().unwrap() {
                let log = read_to_string(self.folder.path().join("log")).unwrap_or_default();
                eprintln!("it ended with {status}:\n{log}");
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            sleep(READY_PAUSE);
        }
        false
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        // nginx stops its workers on SIGTERM only.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

type Addresses<'a> = &'a [(&'static str, SocketAddr)];

fn nginx(folder: &Path, addresses: Addresses<'_>, changes: Changes<'_>) -> Command {
    // By default nginx writes to system directories, and a busy machine may exceed the timeouts.
    let own = "http {\n access_log off; client_body_temp_path body; proxy_temp_path proxy;\n\
               fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n";
    let patient =
        [("http {", own), ("timeout 100ms", "timeout 30s"), ("timeout    250ms", "timeout 30s")];
    let text = deployed("nginx/nginx.conf", &[&patient[..], changes].concat());
    write(folder.join("nginx.conf"), with_addresses(text, addresses)).unwrap();
    for included in ["tollgate-headers.conf", "tollgate-refund.conf"] {
        write(folder.join(included), deployed(&format!("nginx/{included}"), &[])).unwrap();
    }
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).args(["-e", "stderr", "-c", "nginx.conf"]);
    command.args(["-g", "daemon off; pid nginx.pid;"]);
    command
}

fn haproxy(folder: &Path, addresses: Addresses<'_>, changes: Changes<'_>) -> Command {
    let socket = format!("abns@{}", folder.join("tollgate").display());
    let (lua, config): (Vec<_>, Vec<_>) =
        changes.iter().partition(|(old, _)| old.contains("local "));
    let own = [
        ("abns@tollgate", &*socket),
        ("lua-load-per-thread", "tune.lua.session-timeout 60s\n    lua-load-per-thread"),
        ("timeout connect 100ms", "timeout connect 30s"),
        ("timeout server  250ms", "timeout server 30s"),
    ];
    let text = deployed("haproxy/haproxy.cfg", &[&own[..], &config].concat());
    write(folder.join("haproxy.cfg"), with_addresses(text, addresses)).unwrap();
    let patient = [("TIMEOUT = 1000", "TIMEOUT = 30000")];
    let text = deployed("haproxy/tollgate.lua", &[&patient[..], &lua].concat());
    write(folder.join("tollgate.lua"), text).unwrap();
    let mut command = Command::new("haproxy");
    command.current_dir(folder).args(["-db", "-f", "haproxy.cfg"]);
    command
}

/// Returns a file under `deploy/` with the changes of a test.
fn deployed(file: &str, changes: Changes<'_>) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    let text = read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    changes.iter().fold(text, |text, (old, new)| {
        assert!(text.contains(old), "deploy/{file} does not hold {old:?}");
        text.replace(old, new)
    })
}

fn with_addresses(text: String, addresses: Addresses<'_>) -> String {
    // In two steps, because a new address may look like one of the old ones.
    let marked = addresses.iter().enumerate().fold(text, |text, (index, (old, _))| {
        assert!(text.contains(old), "no {old} in the configuration");
        text.replace(old, &format!("@address-{index}@"))
    });
    addresses.iter().enumerate().fold(marked, |text, (index, (_, new))| {
        text.replace(&format!("@address-{index}@"), &new.to_string())
    })
}
