//! A process started with the arguments that a container, a chart or a package gives it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::files::run;

/// The environment of a node: names and values.
pub(crate) const SECRETS: [(&str, &str); 4] = [
    ("TOLLGATE_SECRET", "the same on every node"),
    ("TOLLGATE_TOKEN", "a token of sixteen bytes"),
    ("TOLLGATE_TOKENS", "a token of sixteen bytes"),
    ("TOLLGATE_ADMIN_TOKENS", "another token of sixteen"),
];

/// `tollgate ARGUMENTS…`; ended when dropped.
pub(crate) struct Node {
    child: Child,
    doors: Vec<(String, String)>,
}

impl Node {
    /// Starts with `arguments`, whose policy is `policy`. The `doors` of the policy and of the arguments are opened
    /// on loopback at ports that the system chooses; waits until they are open.
    pub(crate) fn start(arguments: &[String], policy: &Path, doors: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(arguments.iter().map(|argument| here(argument, policy)))
            .args(doors.iter().flat_map(|door| [format!("--{door}"), "127.0.0.1:0".to_owned()]))
            .envs(SECRETS)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
        let (mut doors, mut before) = (Vec::new(), String::new());
        loop {
            let Some(Ok(line)) = told.next() else { panic!("{arguments:?}: no start:\n{before}") };
            if line.contains(" limit, ") || line.contains(" limits, ") {
                break;
            }
            if let Some((door, address)) = line.split_once(" at ") {
                doors.push((door.to_owned(), address.to_owned()));
            }
            before += &format!("{line}\n");
        }
        // What it tells from now on has to go somewhere.
        std::thread::spawn(move || told.for_each(drop));
        Self { child, doors }
    }

    /// Where a door is.
    pub(crate) fn door(&self, name: &str) -> &str {
        let door = self.doors.iter().find(|(door, _)| door == name);
        &door.unwrap_or_else(|| panic!("no {name} in {:?}", self.doors)).1
    }

    /// Has it read its policy anew: the answer, and its status.
    pub(crate) fn reload(&self) -> String {
        let url = format!("http://{}/v1/policy/reload", self.door("admin"));
        let (_, token) = SECRETS[3];
        let mut curl = Command::new("curl");
        curl.args(["-s", "-X", "POST", "-w", " %{http_code}", "-H"]);
        let told = run(curl.args([&format!("authorization: Bearer {token}"), &url]));
        String::from_utf8(told.stdout).unwrap()
    }

    /// The names of its doors, in their order.
    pub(crate) fn doors(&self) -> Vec<&str> {
        self.doors.iter().map(|(door, _)| door.as_str()).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An argument as it is on this machine.
fn here(argument: &str, policy: &Path) -> String {
    match argument.parse::<SocketAddr>() {
        Ok(_) => "127.0.0.1:0".to_owned(),
        Err(_) => argument.replace("/etc/tollgate/policy.yaml", &policy.display().to_string()),
    }
}
