//! The commands that nodes send to a simulated server.

use std::sync::OnceLock;

use super::resp::Reply;
use super::{Entry, Role, Server, Write, keys};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const BUSY: &str = "BUSY Redis is busy running a script.";
const READONLY: &str = "READONLY You can't write against a read only replica.";

impl Server {
    /// Executes one command. `peers` are the names of all servers. Returns the reply, and the
    /// writes that the caller must apply to this server and send to its replicas.
    pub(crate) fn execute(&mut self, args: &[&[u8]], peers: &[String]) -> (Reply, Vec<Write>) {
        self.catch_up();
        let verb = args.first().map(|word| text(word)).unwrap_or_default();
        let arguments = args.get(1..).unwrap_or_default();
        if self.is_busy {
            return reads(Reply::error(BUSY));
        }
        // Nodes send the names of commands in capital letters.
        match verb {
            "PING" => reads(Reply::Status("PONG")),
            "CLIENT" | "SELECT" => reads(Reply::Status("OK")),
            "ROLE" => reads(self.role_reply(peers)),
            "TIME" => {
                let now = self.now().as_millis();
                let parts = [now / 1_000, now % 1_000 * 1_000];
                reads(Reply::List(parts.map(|part| Reply::text(part.to_string())).into()))
            }
            "INFO" => reads(Reply::text(self.info(arguments))),
            "MGET" => reads(Reply::List(arguments.iter().map(|name| self.get(name)).collect())),
            "EXISTS" => {
                let there = arguments.iter().filter(|name| self.entry(name).is_some()).count();
                reads(Reply::Number(i64::try_from(there).unwrap_or(i64::MAX)))
            }
            "SET" => self.set(arguments),
            "PEXPIRE" => self.expire(arguments),
            "FUNCTION" => self.load_function(arguments),
            "SCRIPT" => reads(Reply::error("ERR the model loads scripts elsewhere")),
            "FCALL" => self.call_function(arguments, false),
            "FCALL_RO" => self.call_function(arguments, true),
            "EVALSHA" => self.call_script(arguments, false),
            "EVALSHA_RO" => self.call_script(arguments, true),
            verb => reads(Reply::error(format!("ERR unknown command '{verb}'"))),
        }
    }

    fn get(&self, name: &[u8]) -> Reply {
        self.entry(name).map_or(Reply::Nil, |entry| Reply::Text(entry.value.clone()))
    }

    fn role_reply(&self, peers: &[String]) -> Reply {
        let offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
        Reply::List(match self.role {
            Role::Primary => {
                vec![Reply::text("master"), Reply::Number(offset), Reply::List(Vec::new())]
            }
            Role::Replica(primary) => vec![
                Reply::text("slave"),
                Reply::text(peers[primary].clone()),
                Reply::Number(6_379),
                Reply::text(if self.is_detached { "connect" } else { "connected" }),
                Reply::Number(offset),
            ],
        })
    }

    fn info(&self, arguments: &[&[u8]]) -> String {
        if arguments.first().is_some_and(|section| *section == b"stats") {
            return format!("# Stats\r\nevicted_keys:{}\r\n", self.evicted);
        }
        let (offset, replication_id) = (self.offset, self.replication_id);
        let role = match self.role {
            Role::Primary => "role:master\r\n".to_owned(),
            Role::Replica(_) => format!(
                "role:slave\r\nmaster_link_status:{}\r\nmaster_last_io_seconds_ago:0\r\n\
                 slave_repl_offset:{offset}\r\n",
                if self.is_detached { "down" } else { "up" }
            ),
        };
        let origin = self.origin.map_or_else(
            || format!("master_replid2:{:040}\r\nsecond_repl_offset:-1\r\n", 0),
            |(before, first)| {
                format!("master_replid2:{before:040x}\r\nsecond_repl_offset:{first}\r\n")
            },
        );
        format!(
            "# Replication\r\n{role}master_replid:{replication_id:040x}\r\n\
             master_repl_offset:{offset}\r\n{origin}"
        )
    }

    /// Returns the error with which the server refuses writes at present. Returns `None` if it
    /// accepts them.
    fn refused(&self) -> Option<Reply> {
        match self.role {
            Role::Replica(_) => Some(Reply::error(READONLY)),
            Role::Primary if self.is_full => Some(Reply::error(OOM)),
            Role::Primary => None,
        }
    }

    /// Executes `SET name value [NX] PX ms`.
    fn set(&self, arguments: &[&[u8]]) -> (Reply, Vec<Write>) {
        if let Some(error) = self.refused() {
            return reads(error);
        }
        let [name, value, options @ ..] = arguments else { return wrong_arity() };
        let has = |option: &str| options.iter().any(|word| text(word).eq_ignore_ascii_case(option));
        if has("NX") && self.entry(name).is_some() {
            return reads(Reply::Nil);
        }
        let lives = options.last().filter(|_| has("PX")).and_then(|word| text(word).parse().ok());
        let expires_at = lives.map(|lives: u64| self.now().as_millis() + lives);
        let entry = Some(Entry { value: value.to_vec(), expires_at });
        (Reply::Status("OK"), vec![Write::Key { name: name.to_vec(), entry }])
    }

    /// Executes `PEXPIRE name ms`. A server that is out of memory executes this command too.
    fn expire(&self, arguments: &[&[u8]]) -> (Reply, Vec<Write>) {
        if let Role::Replica(_) = self.role {
            return reads(Reply::error(READONLY));
        }
        let [name, lives] = arguments else { return wrong_arity() };
        let Some(entry) = self.entry(name) else { return reads(Reply::Number(0)) };
        let lives: u64 = text(lives).parse().unwrap_or(0);
        let entry = Entry { expires_at: Some(self.now().as_millis() + lives), ..entry.clone() };
        (Reply::Number(1), vec![Write::Key { name: name.to_vec(), entry: Some(entry) }])
    }

    /// Executes `FUNCTION LOAD library`.
    fn load_function(&self, arguments: &[&[u8]]) -> (Reply, Vec<Write>) {
        if let Some(error) = self.refused() {
            return reads(error);
        }
        let library = arguments.get(1).map(|library| text(library)).unwrap_or_default();
        let first = library.lines().next().unwrap_or_default();
        match first.strip_prefix("#!lua name=") {
            Some(name) if self.library.as_deref() == Some(name) => {
                reads(Reply::error(format!("ERR Library '{name}' already exists")))
            }
            Some(name) => (Reply::text(name), vec![Write::Library(name.to_owned())]),
            None => reads(Reply::error("ERR Missing library metadata")),
        }
    }

    /// Loads a script. The script is not sent to replicas.
    pub(crate) fn load_script(&mut self, script: &[u8]) -> Reply {
        // The servers of all worlds load the same script.
        static KNOWN: OnceLock<(Vec<u8>, String)> = OnceLock::new();
        let hash = || redis::Script::new(text(script)).get_hash().to_owned();
        let (known, known_hash) = KNOWN.get_or_init(|| (script.to_vec(), hash()));
        let hash = if known == script { known_hash.clone() } else { hash() };
        self.scripts.insert(hash.clone());
        Reply::text(hash)
    }

    fn call_function(&self, arguments: &[&[u8]], only_reads: bool) -> (Reply, Vec<Write>) {
        let function = arguments.first().map(|name| text(name)).unwrap_or_default();
        let suffix = self.library.as_deref().and_then(|name| function.strip_prefix(name));
        let is_look = match suffix {
            Some("_look") => true,
            Some("" | "_tight" | "_replace") => false,
            _ => return reads(Reply::error("ERR Function not found")),
        };
        if only_reads && !is_look {
            return reads(Reply::error("ERR Can not execute a script with write flag using *_ro"));
        }
        let is_tight = suffix == Some("_tight");
        match self.refused().filter(|_| !is_look) {
            Some(error) if self.role != Role::Primary || !is_tight => reads(error),
            _ if suffix == Some("_replace") => self.replace(arguments),
            _ => self.call_step(arguments, is_look),
        }
    }

    fn call_script(&self, arguments: &[&[u8]], only_reads: bool) -> (Reply, Vec<Write>) {
        let hash = arguments.first().map(|name| text(name)).unwrap_or_default();
        if !self.scripts.contains(hash) {
            return reads(Reply::error("NOSCRIPT No matching script."));
        }
        let (reply, writes) = match arguments {
            // The script that replaces a document has four arguments, and the step has one.
            [_, b"2", _, _, _, _, _, _] => self.replace(arguments),
            _ => self.call_step(arguments, only_reads),
        };
        match self.refused() {
            // If the server refuses writes, a script fails at its first write.
            Some(error) if !writes.is_empty() => reads(error),
            _ => (reply, writes),
        }
    }

    /// Executes the function or the script that replaces a shared document. Replaces the values of
    /// two keys, the version and the content, if the version is `before`. The version is empty if one
    /// of the two keys is missing. Both keys expire after `lives` ms.
    fn replace(&self, arguments: &[&[u8]]) -> (Reply, Vec<Write>) {
        let [_, b"2", version, document, before, after, bytes, lives] = *arguments else {
            return wrong_arity();
        };
        let (names, values) = ([version, document], [after, bytes]);
        let stored = self.entry(names[0]).filter(|_| self.entry(names[1]).is_some());
        let known = stored.map(|entry| &*entry.value).unwrap_or_default();
        if known != before {
            return reads(Reply::Number(0));
        }
        let expires_at = text(lives).parse().ok().map(|lives: u64| self.now().as_millis() + lives);
        let write = |(name, value): (&[u8], &[u8])| {
            let entry = Some(Entry { value: value.to_vec(), expires_at });
            Write::Key { name: name.to_vec(), entry }
        };
        (Reply::Number(1), names.into_iter().zip(values).map(write).collect())
    }

    /// Executes a call of the step. The arguments are the name of the function or the hash of the
    /// script, the number of keys, the keys, and the argument of the step. If `only_reads` is set,
    /// a call that writes is answered with an error.
    fn call_step(&self, arguments: &[&[u8]], only_reads: bool) -> (Reply, Vec<Write>) {
        let count = arguments.get(1).and_then(|count| text(count).parse().ok()).unwrap_or(0);
        let Some((names, [argument])) =
            arguments.get(2..).and_then(|rest| rest.split_at_checked(count))
        else {
            return wrong_arity();
        };
        match keys::run(self, names, argument) {
            Ok((_, writes)) if only_reads && !writes.is_empty() => {
                reads(Reply::error("ERR Write commands are not allowed from read-only scripts."))
            }
            Ok((reply, writes)) => (Reply::Text(reply), writes),
            Err(error) => reads(Reply::error(error.to_string())),
        }
    }
}

/// Returns a word as text. The words that the model reads as text are valid UTF-8.
fn text(word: &[u8]) -> &str {
    std::str::from_utf8(word).unwrap_or_default()
}

fn reads(reply: Reply) -> (Reply, Vec<Write>) {
    (reply, Vec::new())
}

fn wrong_arity() -> (Reply, Vec<Write>) {
    reads(Reply::error("ERR wrong number of arguments"))
}
