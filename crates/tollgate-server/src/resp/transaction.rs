//! `MULTI`, `EXEC`, `DISCARD`: commands that are queued and executed together.
//!
//! As in Redis, an unknown command or a wrong number of arguments while commands are queued makes
//! `EXEC` fail with `EXECABORT`, and nothing is executed. The queue of a connection is bounded by
//! [`MAX_QUEUED`] commands and [`MAX_QUEUED_BYTES`].

use super::args::Args;
use super::command::{Command, CommandKind};

/// The most commands of one transaction.
pub const MAX_QUEUED: usize = 1_024;

/// The most bytes that all arguments of one transaction may have together.
pub const MAX_QUEUED_BYTES: usize = 256 * 1024;

const NESTED: &str = "ERR MULTI calls can not be nested";
const NOT_ALLOWED: &str = "ERR Command not allowed inside a transaction";

/// The reply to `EXEC` after a command could not be queued.
pub(super) const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

/// The commands that a connection has queued since `MULTI`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// The arguments of all commands, one after the other.
    bytes: Vec<u8>,
    /// The end of each argument in `bytes`.
    argument_ends: Vec<usize>,
    /// The end of each command in `argument_ends`.
    command_ends: Vec<usize>,
    is_aborted: bool,
}

impl Transaction {
    /// Queues a command.
    ///
    /// # Errors
    /// The text of the error reply. A later `EXEC` of this transaction fails.
    pub(super) fn queue(&mut self, command: &Command, args: &Args<'_>) -> Result<(), String> {
        let refused = match command.kind {
            CommandKind::Multi => Some(NESTED.to_owned()),
            CommandKind::Auth | CommandKind::Hello => Some(NOT_ALLOWED.to_owned()),
            _ => self.overflow(args),
        };
        if let Some(error) = refused {
            self.abort();
            return Err(error);
        }
        for arg in args {
            self.bytes.extend_from_slice(arg);
            self.argument_ends.push(self.bytes.len());
        }
        self.command_ends.push(self.argument_ends.len());
        Ok(())
    }

    fn overflow(&self, args: &Args<'_>) -> Option<String> {
        let bytes = self.bytes.len() + args.iter().map(|arg| arg.len()).sum::<usize>();
        (self.command_ends.len() >= MAX_QUEUED || bytes > MAX_QUEUED_BYTES).then(|| {
            format!(
                "ERR the transaction is too large: send at most {MAX_QUEUED} commands and \
                 {MAX_QUEUED_BYTES} bytes before EXEC"
            )
        })
    }

    /// Drops the queued commands and makes a later `EXEC` fail.
    pub(super) fn abort(&mut self) {
        *self = Self { is_aborted: true, ..Self::default() };
    }

    /// Returns whether a command could not be queued.
    pub(super) const fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Returns the number of bytes that the transaction uses.
    pub(super) fn bytes(&self) -> usize {
        let ends = self.argument_ends.capacity() + self.command_ends.capacity();
        self.bytes.capacity() + ends * size_of::<usize>()
    }

    /// Returns the number of queued commands.
    pub(super) fn len(&self) -> usize {
        self.command_ends.len()
    }

    /// Returns the arguments of the command at `index`, which is below [`Self::len`].
    pub(super) fn command(&self, index: usize) -> Args<'_> {
        let start_of = |ends: &[usize], index: usize| match index {
            0 => 0,
            index => ends[index - 1],
        };
        let arguments = start_of(&self.command_ends, index)..self.command_ends[index];
        arguments
            .map(|at| &self.bytes[start_of(&self.argument_ends, at)..self.argument_ends[at]])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(transaction: &mut Transaction, parts: &[&[u8]]) -> Result<(), String> {
        let args: Args<'_> = parts.iter().copied().collect();
        transaction.queue(Command::find(parts).unwrap(), &args)
    }

    #[test]
    fn commands_come_back_as_they_were_queued() {
        let mut transaction = Transaction::default();
        let commands: [&[&[u8]]; 3] = [&[b"PING"], &[b"ECHO", b""], &[b"ECHO", b"a b"]];
        for parts in commands {
            queue(&mut transaction, parts).unwrap();
        }
        assert_eq!(transaction.len(), commands.len());
        for (index, parts) in commands.into_iter().enumerate() {
            assert_eq!(transaction.command(index).as_slice(), parts);
        }
    }

    #[test]
    fn a_transaction_has_a_bound_in_commands_and_in_bytes() {
        let mut transaction = Transaction::default();
        for _ in 0..MAX_QUEUED {
            queue(&mut transaction, &[b"PING"]).unwrap();
        }
        assert!(queue(&mut transaction, &[b"PING"]).is_err());
        assert!(transaction.is_aborted());
        assert_eq!((transaction.len(), transaction.bytes.capacity()), (0, 0));

        let mut transaction = Transaction::default();
        let half = vec![b'x'; MAX_QUEUED_BYTES / 2];
        queue(&mut transaction, &[b"ECHO", &half]).unwrap();
        assert!(queue(&mut transaction, &[b"ECHO", &half]).is_err());
    }
}
