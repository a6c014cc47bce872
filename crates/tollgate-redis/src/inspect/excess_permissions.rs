//! Finds excess permissions of a user without executing any harmful command.

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script, Value};

use crate::script::{is_unloaded, query};

/// Permissions of a user that Tollgate does not need. Only some permissions are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcessPermissions {
    /// The commands that the user may execute although Tollgate does not need them. The most
    /// harmful commands are first.
    pub commands: Vec<&'static str>,
    /// Whether the user may read or write keys that do not belong to Tollgate.
    pub foreign_keys: bool,
    /// Whether the user may execute every command that was checked.
    pub everything: bool,
    /// How the permissions were checked.
    pub check: PermissionCheck,
}

/// How permissions are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionCheck {
    /// The server reported for each command whether the user's access rules permit the command.
    /// Redis 7.0 and later and Valkey support this method.
    AclRules,
    /// Harmless commands were sent to the server. Commands that change data were not checked.
    #[default]
    Probing,
}

/// A command that Tollgate never sends for its own work.
struct CheckedCommand {
    name: &'static str,
    /// The command and its arguments. If `sent` is [`ProbeKind::Harmless`], the arguments make the
    /// command harmless to send.
    command_line: &'static str,
    sent: ProbeKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProbeKind {
    /// The command may be sent: it reads little, or finds nothing to read.
    Harmless,
    /// The command is never sent. Only the server's access rules for the command are checked.
    Harmful,
}

const fn harmless(name: &'static str, command_line: &'static str) -> CheckedCommand {
    CheckedCommand { name, command_line, sent: ProbeKind::Harmless }
}

const fn harmful(name: &'static str, command_line: &'static str) -> CheckedCommand {
    CheckedCommand { name, command_line, sent: ProbeKind::Harmful }
}

/// The commands to check. The list contains some commands of every category that access rules
/// distinguish. `SCAN` is not in the list, because users get the [permission for
/// it](crate::ListError::NotPermitted) to list subjects.
const COMMANDS: [CheckedCommand; 25] = [
    harmful("FLUSHALL", "FLUSHALL"),
    harmful("FLUSHDB", "FLUSHDB"),
    harmful("SHUTDOWN", "SHUTDOWN"),
    harmful("CONFIG SET", "CONFIG SET maxmemory 0"),
    harmful("ACL SETUSER", "ACL SETUSER nobody"),
    harmful("MODULE LOAD", "MODULE LOAD nothing"),
    harmful("REPLICAOF", "REPLICAOF NO ONE"),
    harmful("CLUSTER RESET", "CLUSTER RESET"),
    harmful("CLUSTER FAILOVER", "CLUSTER FAILOVER"),
    harmful("FUNCTION FLUSH", "FUNCTION FLUSH"),
    harmful("SCRIPT FLUSH", "SCRIPT FLUSH"),
    harmful("SWAPDB", "SWAPDB 0 1"),
    harmful("DEBUG", "DEBUG SLEEP 0"),
    harmful("MONITOR", "MONITOR"),
    harmful("CLIENT KILL", "CLIENT KILL ID 0"),
    harmful("KEYS", "KEYS *"),
    harmful("SAVE", "SAVE"),
    harmful("PUBLISH", "PUBLISH nobody nothing"),
    harmless("CONFIG GET", "CONFIG GET save"),
    harmless("ACL USERS", "ACL USERS"),
    harmless("LASTSAVE", "LASTSAVE"),
    harmless("SLOWLOG LEN", "SLOWLOG LEN"),
    harmless("DBSIZE", "DBSIZE"),
    harmless("RANDOMKEY", "RANDOMKEY"),
    harmless("GET", "GET tg1:{nobody}"),
];

/// Commands that Tollgate also sends for its own work. In this check, the commands name a key that
/// does not belong to Tollgate and that does not exist.
const FOREIGN: [CheckedCommand; 3] = [
    harmless("EXISTS", "EXISTS nobody:tg1"),
    harmless("MGET", "MGET nobody:tg1"),
    harmful("SET", "SET nobody:tg1 nothing"),
];

/// A command that the user is certainly permitted to send, because the check by access rules itself
/// runs as a script. If the server reports that this command is denied, the server does not support
/// the check by access rules.
const CONTROL: &str = "EVALSHA nothing 0";

const SCRIPT: &str = include_str!("probe_permissions.lua");

impl ExcessPermissions {
    /// Checks the permissions of the user of `connection`. The check leaves one script in the
    /// server's script cache.
    ///
    /// # Errors
    /// The error of the connection, if no answer was received.
    pub(super) async fn query(connection: &mut MultiplexedConnection) -> RedisResult<Self> {
        if let Some(answers) = by_rules(connection).await? {
            return Ok(Self::of(PermissionCheck::AclRules, checked_commands().zip(answers)));
        }
        let tried: Vec<_> =
            checked_commands().filter(|it| it.sent == ProbeKind::Harmless).collect();
        let answers = by_trying(connection, &tried).await?;
        Ok(Self::of(PermissionCheck::Probing, tried.into_iter().zip(answers)))
    }

    fn of(
        check: PermissionCheck,
        answers: impl Iterator<Item = (&'static CheckedCommand, bool)>,
    ) -> Self {
        let mut excess = Self { everything: true, check, ..Self::default() };
        for (question, is_permitted) in answers {
            let is_foreign = FOREIGN.iter().any(|foreign| foreign.name == question.name);
            match (is_permitted, is_foreign) {
                (false, _) => excess.everything = false,
                (true, true) => excess.foreign_keys = true,
                (true, false) => excess.commands.push(question.name),
            }
        }
        excess
    }
}

fn checked_commands() -> impl Iterator<Item = &'static CheckedCommand> {
    COMMANDS.iter().chain(&FOREIGN)
}

/// Returns, for each command, whether the server's access rules permit the command. Returns `None`
/// if the server does not support this check.
async fn by_rules(connection: &mut MultiplexedConnection) -> RedisResult<Option<Vec<bool>>> {
    let mut call = redis::cmd("EVALSHA");
    call.arg(Script::new(SCRIPT).get_hash()).arg(0).arg(CONTROL);
    for question in checked_commands() {
        call.arg(question.command_line);
    }
    let mut reply = query(connection, &call).await;
    if reply.as_ref().is_err_and(is_unloaded)
        && query(connection, redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT)).await.is_ok()
    {
        reply = query(connection, &call).await;
    }
    let Ok(Value::BulkString(results)) = reply else { return lost(reply).map(|()| None) };
    let mut answers = results.iter().map(|answer| *answer == b'1');
    let is_of_use = results.len() == 1 + checked_commands().count() && answers.next() == Some(true);
    Ok(is_of_use.then(|| answers.collect()))
}

/// Sends each command. Returns, for each command, whether the user may execute the command.
async fn by_trying(
    connection: &mut MultiplexedConnection,
    checked_commands: &[&CheckedCommand],
) -> RedisResult<Vec<bool>> {
    let mut commands = redis::pipe();
    for question in checked_commands {
        let mut command_line = question.command_line.split(' ');
        let command = commands.cmd(command_line.next().unwrap_or_default());
        for word in command_line {
            command.arg(word);
        }
    }
    let replies = connection.send_packed_commands(&commands, 0, checked_commands.len()).await?;
    Ok(replies.iter().map(is_permitted).collect())
}

/// Returns whether the reply means that the command is permitted. Some errors also mean that: the
/// server checks permissions first, so a command is permitted if the server replies that another
/// node owns the key, or that it has lost its primary.
fn is_permitted(reply: &Value) -> bool {
    match reply {
        Value::ServerError(error) => {
            matches!(error.code(), "MOVED" | "ASK" | "CLUSTERDOWN" | "MASTERDOWN")
        }
        _ => true,
    }
}

/// Returns the error of the connection, if the connection failed. Returns `Ok` for any reply of the
/// server, including an error reply.
fn lost(reply: RedisResult<Value>) -> RedisResult<()> {
    match reply {
        Err(error) if error.code().is_none() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_permitted_is_reported_in_the_order_of_harm() {
        let none = ExcessPermissions::of(
            PermissionCheck::AclRules,
            checked_commands().map(|question| (question, false)),
        );
        assert_eq!(
            none,
            ExcessPermissions { check: PermissionCheck::AclRules, ..ExcessPermissions::default() }
        );
        let all = ExcessPermissions::of(
            PermissionCheck::AclRules,
            checked_commands().map(|question| (question, true)),
        );
        assert!(all.everything && all.foreign_keys);
        assert_eq!(all.commands.len(), COMMANDS.len());
        assert_eq!(all.commands[0], "FLUSHALL");
        let keys = checked_commands().map(|question| (question, question.name == "MGET"));
        let keys = ExcessPermissions::of(PermissionCheck::Probing, keys);
        assert_eq!(keys, ExcessPermissions { foreign_keys: true, ..ExcessPermissions::default() });
    }
}
