//! Runs a session from a page in one shell from top to bottom, and compares the output of each
//! command.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::packaging::files::{root, run, shipped};
use crate::packaging::guide::blocks;
use crate::packaging::ports::Ports;
use crate::packaging::shown::missing;
use crate::packaging::steps::{Step, steps};

/// Files with ports that sessions use.
const CONFIGURATIONS: [&str; 4] = ["policies", "deploy/nginx", "deploy/haproxy", "deploy/envoy"];

/// Seconds until a session that does not finish is stopped.
const PATIENCE: &str = "120";

/// The `console` blocks of a page or of some of its sections, with the files that it shows.
pub(crate) struct Session {
    page: &'static str,
    sections: &'static [&'static str],
    ports: &'static [&'static str],
    changes: &'static [(&'static str, &'static str)],
}

impl Session {
    /// Creates the session of a whole `page`, with free ports instead of `ports`.
    pub(crate) const fn of(page: &'static str, ports: &'static [&'static str]) -> Self {
        Self { page, sections: &[], ports, changes: &[] }
    }

    /// Limits the session to the sections with these headings, in this order. The text before the
    /// first heading has none.
    pub(crate) const fn in_sections(self, sections: &'static [&'static str]) -> Self {
        Self { sections, ..self }
    }

    /// Sets replacements in the page and its files, for steps that would take long or fail on a
    /// busy machine.
    pub(crate) const fn with(self, changes: &'static [(&'static str, &'static str)]) -> Self {
        Self { changes, ..self }
    }

    /// Returns whether this session runs a `block` of `page`.
    pub(crate) fn runs(&self, page: &str, block: &str) -> bool {
        self.page == page && blocks(&self.text()).contains(&("console", block))
    }

    fn text(&self) -> String {
        let page = shipped(self.page);
        if self.sections.is_empty() {
            return page;
        }
        let of = |section: &&str| {
            let mut sections = page.split("\n## ");
            let (before, heading) = (sections.next(), format!("{section}\n"));
            let found = if section.is_empty() {
                before
            } else {
                sections.find(|text| text.starts_with(&heading))
            };
            found.unwrap_or_else(|| panic!("{} has no section {section:?}", self.page)).to_owned()
        };
        self.sections.iter().map(of).collect::<Vec<_>>().join("\n")
    }

    /// Runs the session, and compares its output with the page.
    pub(crate) fn follow(&self) {
        let ports = Ports::free(self.ports);
        let folder = tempfile::tempdir().unwrap();
        let mut texts = vec![self.text()];
        texts.extend(
            CONFIGURATIONS.iter().flat_map(|folder| files(folder)).map(|path| shipped(&path)),
        );
        for (from, _) in self.changes {
            assert!(
                texts.iter().any(|text| text.contains(from)),
                "{}: nothing says {from:?}",
                self.page
            );
        }
        let here = |text: &str| {
            let changed = self
                .changes
                .iter()
                .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
            ports.put_into(&changed)
        };
        lay_out(folder.path(), here);
        let text = here(&texts[0]);
        let mut response = Vec::new();
        for (kind, block) in blocks(&text) {
            match kind {
                "console" => response.extend(steps(block)),
                "yaml" => write_named(folder.path(), block),
                _ => {}
            }
        }
        assert!(!response.is_empty(), "{} shows no session", self.page);
        self.compare(&response, folder.path(), &script(&response, &ports));
    }

    fn compare(&self, response: &[Step], folder: &Path, script: &str) {
        let mut shell = Command::new("timeout");
        shell.args(["--kill-after=1", PATIENCE, "bash", "-c", script]).current_dir(folder);
        let output = run(shell.env("PATH", programs()));
        let printed = |index: usize| {
            fs::read_to_string(folder.join(format!("{index}.out"))).unwrap_or_default()
        };
        let all: String = (0..response.len()).map(printed).collect();
        assert!(output.status.success(), "{}: {output:?}\n{all}", self.page);
        for (index, step) in response.iter().enumerate() {
            let mut own = printed(index);
            if own.is_empty() {
                // The output came from another program that the command started.
                own = (0..index).map(printed).collect();
            }
            if let Some(missing) = missing(&step.shown, &own) {
                panic!("{}: $ {}\nprints no {missing:?}, but\n{own}", self.page, step.command);
            }
        }
    }
}

/// Returns the files of a directory of this project.
fn files(folder: &str) -> Vec<String> {
    let entries =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| format!("{folder}/{}", name.to_str().unwrap())).collect()
}

/// Returns the files that sessions use: the shipped files, with the replacements in `here`.
fn lay_out(folder: &Path, here: impl Fn(&str) -> String) {
    symlink(root().join("examples"), folder.join("examples")).unwrap();
    for used in CONFIGURATIONS {
        fs::create_dir_all(folder.join(used)).unwrap();
        for path in files(used) {
            fs::write(folder.join(&path), here(&shipped(&path))).unwrap();
        }
    }
}

/// Returns the search path for programs: the directories of Tollgate's binary, of programs that
/// `./test` installs, and of the system.
fn programs() -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap();
    let envoy = root().join("target/envoy");
    format!("{}:{}:{}:/usr/sbin", own.display(), envoy.display(), std::env::var("PATH").unwrap())
}

/// Writes a file that a page shows with its name in the first line.
fn write_named(folder: &Path, block: &str) {
    let name = block.lines().next().and_then(|line| line.strip_prefix("# "));
    if let Some(name) = name.filter(|name| name.ends_with(".yaml") && !name.contains(['/', ' '])) {
        fs::write(folder.join(name), block).unwrap();
    }
}

/// Returns a script with all steps for one shell. The output of each step goes to a file. If a
/// program keeps running after its step, the script waits until the program prints the expected
/// output, or until a socket listens at the address that its command or the next command contains.
/// A step without expected output has to succeed.
fn script(steps: &[Step], ports: &Ports) -> String {
    let mut script = String::from(
        "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n\
         heard() { for _ in $(seq 300); do grep -qF -- \"$1\" $2 && return; sleep 0.1; done; \
         echo \"nothing says $1\" >&2; exit 1; }\n\
         listens() { for _ in $(seq 300); do (: </dev/tcp/127.0.0.1/$1) 2>/dev/null && return; sleep 0.1; done; \
         echo \"nobody listens at $1\" >&2; exit 1; }\n",
    );
    for (index, step) in steps.iter().enumerate() {
        let last = step.last().replace('\'', r"'\''");
        match step.staying() {
            Some(program) => {
                script += &format!("{program} > {index}.out 2>&1 &\n");
                if program.starts_with("tollgate ") {
                    script += "server=$!\n";
                }
                let next = steps.get(index + 1).map_or("", |step| &step.command);
                let port = ports.first_in(program).or_else(|| ports.first_in(next));
                script += &match port.filter(|_| last.is_empty()) {
                    Some(port) => format!("listens {port}\n"),
                    None => format!("heard '{last}' {index}.out\n"),
                };
            }
            None => {
                // Only the page's own process of that name is meant.
                let command = step.command.replace("$(pidof tollgate)", "$server");
                script += &format!("{{ {command}\n}} > {index}.out 2>&1");
                script += &if last.is_empty() {
                    format!(" || {{ echo 'step {index} failed' >&2; exit 1; }}\n")
                } else {
                    format!("\n[ -s {index}.out ] || heard '{last}' '*.out'\n")
                };
            }
        }
    }
    script + "true\n"
}
