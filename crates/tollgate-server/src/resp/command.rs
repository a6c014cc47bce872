//! The supported commands, and their descriptions for `COMMAND`.

use super::reply::{Replies, echoed};

/// The operation that a command executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    Auth,
    CellThrottle,
    Charge,
    Client,
    Command,
    CrabThrottle,
    Discard,
    Echo,
    Exec,
    Extend,
    Hello,
    Info,
    Multi,
    Peek,
    Ping,
    Quit,
    Refund,
    Release,
    Reserve,
    Reset,
    Select,
    Settle,
    LimitStatus,
}

/// The description of one command.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    /// Other names of the command.
    aliases: &'static [&'static str],
    pub(super) kind: CommandKind,
    /// The number of arguments, including the name of the command. A negative number is a minimum.
    arity: i64,
    /// The position of the key among the arguments, or 0 for none.
    key: i64,
    summary: &'static str,
}

/// The commands, most frequent first.
static COMMANDS: [Command; 23] = [
    Command {
        key: 1,
        ..command(
            "cl.throttle",
            CommandKind::CellThrottle,
            -1,
            "Charges a token bucket, as redis-cell does",
        )
    },
    Command {
        key: 1,
        ..command(
            "throttle",
            CommandKind::CrabThrottle,
            -1,
            "Charges a token bucket, as throttlecrab does",
        )
    },
    Command {
        aliases: &["tg.charge", "tollgate.check", "tg.check"],
        ..command(
            "tollgate.charge",
            CommandKind::Charge,
            -3,
            "Charges limits of the policy, all or none",
        )
    },
    Command {
        aliases: &["tg.peek"],
        ..command(
            "tollgate.peek",
            CommandKind::Peek,
            -3,
            "Returns whether limits would admit a cost",
        )
    },
    Command {
        aliases: &["tg.standing"],
        ..command(
            "tollgate.standing",
            CommandKind::LimitStatus,
            -1,
            "Returns the status of all limits of a subject",
        )
    },
    Command {
        aliases: &["tg.refund"],
        ..command("tollgate.refund", CommandKind::Refund, 2, "Refunds the charge of a receipt")
    },
    Command {
        aliases: &["tg.reserve"],
        ..command("tollgate.reserve", CommandKind::Reserve, -4, "Reserves units of limits")
    },
    Command {
        aliases: &["tg.extend"],
        ..command("tollgate.extend", CommandKind::Extend, 3, "Extends a reservation")
    },
    Command {
        aliases: &["tg.settle"],
        ..command(
            "tollgate.settle",
            CommandKind::Settle,
            -3,
            "Settles a reservation with the actual cost",
        )
    },
    Command {
        aliases: &["tg.release"],
        ..command(
            "tollgate.release",
            CommandKind::Release,
            2,
            "Releases what a receipt has reserved",
        )
    },
    command("auth", CommandKind::Auth, -2, "Authenticates with a token"),
    command("client", CommandKind::Client, -2, "Names and describes the connection"),
    command("command", CommandKind::Command, -1, "Lists the commands"),
    command("discard", CommandKind::Discard, 1, "Drops the queued commands"),
    command("echo", CommandKind::Echo, 2, "Replies with its argument"),
    command("exec", CommandKind::Exec, 1, "Executes the queued commands"),
    command("hello", CommandKind::Hello, -1, "Selects the protocol version"),
    command("info", CommandKind::Info, -1, "Describes the server"),
    command("multi", CommandKind::Multi, 1, "Starts to queue commands"),
    command("ping", CommandKind::Ping, -1, "Replies"),
    command("quit", CommandKind::Quit, -1, "Ends the connection"),
    command("reset", CommandKind::Reset, 1, "Resets the state of the connection"),
    command("select", CommandKind::Select, 2, "Selects the only database"),
];

const fn command(
    name: &'static str,
    kind: CommandKind,
    arity: i64,
    summary: &'static str,
) -> Command {
    Command { name, aliases: &[], kind, arity, key: 0, summary }
}

impl Command {
    /// Returns the command that the first argument names, if the number of arguments is valid for
    /// the command.
    ///
    /// # Errors
    /// The error reply.
    #[inline]
    pub(super) fn find(args: &[&[u8]]) -> Result<&'static Self, String> {
        let Some(command) = named(args[0]) else {
            return Err(if is_script(args[0]) { NO_SCRIPTS.to_owned() } else { unknown(args) });
        };
        if command.takes(args.len()) {
            return Ok(command);
        }
        Err(format!("ERR wrong number of arguments for '{}' command", command.name))
    }

    /// Returns whether the command is allowed before authentication.
    pub(super) const fn is_open(&self) -> bool {
        matches!(
            self.kind,
            CommandKind::Auth | CommandKind::Hello | CommandKind::Quit | CommandKind::Reset
        )
    }

    const fn takes(&self, args: usize) -> bool {
        let args = args as i64;
        if self.arity < 0 { args >= -self.arity } else { args == self.arity }
    }

    const fn is_decision(&self) -> bool {
        matches!(
            self.kind,
            CommandKind::CellThrottle
                | CommandKind::CrabThrottle
                | CommandKind::Charge
                | CommandKind::Refund
                | CommandKind::Reserve
                | CommandKind::Extend
                | CommandKind::Settle
                | CommandKind::Release
        )
    }

    fn write_info(&self, replies: &mut Replies) {
        replies.array(10);
        replies.bulk(self.name);
        replies.integer(self.arity);
        let flags: &[&str] = match self.is_decision() {
            true => &["write", "fast"],
            false if self.is_open() => &["noscript", "fast", "no_auth"],
            false => &["readonly", "fast"],
        };
        replies.set(flags.len());
        flags.iter().for_each(|flag| replies.status(flag));
        (0..3).for_each(|_| replies.integer(self.key));
        // The lists of categories, tips, key specifications and subcommands are empty.
        replies.set(0);
        (0..3).for_each(|_| replies.array(0));
    }

    fn write_docs(&self, replies: &mut Replies) {
        replies.bulk(self.name);
        replies.map(2);
        replies.bulk("summary");
        replies.bulk(self.summary);
        replies.bulk("group");
        replies.bulk(if self.name.contains('.') { "generic" } else { "connection" });
    }
}

#[inline]
fn named(word: &[u8]) -> Option<&'static Command> {
    let is_it = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    COMMANDS
        .iter()
        .find(|command| is_it(command.name) || command.aliases.iter().any(|alias| is_it(alias)))
}

/// The error reply to a command that runs a script. Some users of redis-cell call `CL.THROTTLE`
/// from a script.
const NO_SCRIPTS: &str = "ERR scripts are not supported: send CL.THROTTLE as a command of its own, \
                          or several of them between MULTI and EXEC";

fn is_script(name: &[u8]) -> bool {
    let names = ["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "script"];
    names.iter().any(|script| name.eq_ignore_ascii_case(script.as_bytes()))
}

/// Returns Redis' error reply to an unknown command.
fn unknown(args: &[&[u8]]) -> String {
    let mut arguments = String::new();
    for word in &args[1..] {
        let left = MAX_ARGUMENTS_ECHOED.saturating_sub(arguments.len());
        if left == 0 {
            break;
        }
        arguments += &format!("'{}' ", echoed(&word[..word.len().min(left)]));
    }
    let name = echoed(args[0]);
    format!("ERR unknown command '{name}', with args beginning with: {arguments}")
}

/// The approximate number of bytes of a client's arguments that an error repeats.
const MAX_ARGUMENTS_ECHOED: usize = 128;

/// Replies to `COMMAND` and its subcommands.
pub(super) fn describe(args: &[&[u8]], replies: &mut Replies) {
    let is =
        |name: &str| args.first().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let requested = args.get(1..).unwrap_or_default();
    match args.len() {
        0 => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| command.write_info(replies));
        }
        1 if is("count") => replies.integer(COMMANDS.len() as i64),
        1 if is("list") => {
            replies.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| replies.bulk(command.name));
        }
        1 if is("info") => describe(&[], replies),
        _ if is("info") => {
            replies.array(requested.len());
            for name in requested {
                match named(name) {
                    Some(command) => command.write_info(replies),
                    None => replies.no_array(),
                }
            }
        }
        _ if is("docs") => {
            let known = requested.iter().filter_map(|name| named(name));
            let documented: Vec<&Command> =
                if requested.is_empty() { COMMANDS.iter().collect() } else { known.collect() };
            replies.map(documented.len());
            documented.iter().for_each(|command| command.write_docs(replies));
        }
        _ => replies.error(unknown_subcommand("COMMAND", args[0])),
    }
}

/// Returns Redis' error reply to an unknown subcommand.
pub(super) fn unknown_subcommand(command: &str, word: &[u8]) -> String {
    format!("ERR unknown subcommand '{}'. Try {command} HELP.", echoed(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_any_of_its_names_in_any_case() {
        let kind = |name: &[u8]| named(name).map(|command| command.kind);
        assert_eq!(kind(b"cl.THROTTLE"), Some(CommandKind::CellThrottle));
        assert_eq!(kind(b"TOLLGATE.CHECK"), Some(CommandKind::Charge));
        assert_eq!(kind(b"Tg.Charge"), Some(CommandKind::Charge));
        assert_eq!(kind(b"cl.throttl"), None);
        assert_eq!(kind(b""), None);
    }

    #[test]
    fn a_command_has_its_number_of_words() {
        let error = |args: &[&[u8]]| Command::find(args).unwrap_err();
        let wrong = "ERR wrong number of arguments for 'echo' command";
        assert_eq!(error(&[b"ECHO"]), wrong);
        assert_eq!(error(&[b"echo", b"a", b"b"]), wrong);
        assert!(Command::find(&[b"echo", b"a"]).is_ok());
        assert!(Command::find(&[b"ping", b"a", b"b"]).is_ok());
    }

    #[test]
    fn an_unknown_command_is_answered_as_by_redis_and_briefly() {
        let error = unknown(&[b"get", b"a", b"b c"]);
        assert_eq!(error, "ERR unknown command 'get', with args beginning with: 'a' 'b c' ");
        let long = [b'x'; 1_000];
        assert!(unknown(&[&long, &long, &long]).len() < 400);
    }
}
