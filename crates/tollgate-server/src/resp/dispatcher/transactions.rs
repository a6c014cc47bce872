//! Transactions of a connection: commands are queued after `MULTI` and executed by `EXEC`.

use tollgate::DecisionRequest;
use tollgate::limiter::Decision;
use tollgate::model::Store;

use super::{Dispatcher, MAX_REPLIES};
use crate::resp::args::Args;
use crate::resp::command::{Command, CommandKind};
use crate::resp::session::Next;
use crate::resp::transaction::{self, Transaction};

/// A transaction of which the first commands were executed.
pub(super) struct Executing {
    transaction: Transaction,
    /// The index of the next command.
    next: usize,
}

impl<S, D, F> Dispatcher<'_, S, D, F>
where
    S: Store + 'static,
    D: Fn(DecisionRequest<'_>) -> F,
    F: Future<Output = Decision>,
{
    /// Returns the number of bytes that the commands since `MULTI` use.
    pub(in crate::resp) fn queued_bytes(&self) -> usize {
        let executing = self.executing.as_ref().map(|executing| &executing.transaction);
        self.transaction.as_ref().or(executing).map_or(0, Transaction::bytes)
    }

    /// Queues a command of a transaction, or ends the transaction.
    pub(super) async fn queue(&mut self, command: &Command, args: &Args<'_>) -> Next {
        match command.kind {
            CommandKind::Exec => {
                self.exec();
                return Next::Command;
            }
            CommandKind::Discard => {
                self.transaction = None;
                self.replies.status("OK");
                return Next::Command;
            }
            CommandKind::Quit => return self.session_command(CommandKind::Quit, args),
            CommandKind::Reset => {
                self.transaction = None;
                return self.session_command(CommandKind::Reset, args);
            }
            _ => {}
        }
        let Some(transaction) = &mut self.transaction else { return Next::Command };
        match transaction.queue(command, args) {
            Ok(()) => self.replies.status("QUEUED"),
            Err(error) => self.replies.error(error),
        }
        Next::Command
    }

    /// Begins to execute the queued commands. Their replies are one array.
    fn exec(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        if transaction.is_aborted() {
            self.replies.error(transaction::ABORTED);
            return;
        }
        self.replies.array(transaction.len());
        self.executing = Some(Box::new(Executing { transaction, next: 0 }));
    }

    /// Executes the queued commands in order, until the replies have to be sent or no command is
    /// left. The future is boxed, because it is rare and would make the future of every other
    /// command larger.
    pub(super) async fn execute_queued(&mut self) {
        let Some(mut executing) = self.executing.take() else { return };
        while executing.next < executing.transaction.len() {
            if self.replies.as_bytes().len() >= MAX_REPLIES {
                self.executing = Some(executing);
                return;
            }
            let args = executing.transaction.command(executing.next);
            // The name of the command was checked when the command was queued.
            if let Ok(command) = Command::find(&args) {
                self.execute(command, &args).await;
            }
            executing.next += 1;
        }
        self.finish().await;
    }

    /// Makes the transaction fail at `EXEC`, if there is one.
    pub(super) fn abort_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tollgate::Limiter;
    use tollgate::model::Policy;
    use tollgate::observe::Histogram;
    use tollgate::store::Memory;

    use super::*;
    use crate::access::{Access, Tokens};
    use crate::resp::dispatcher::Progress;

    const COMMANDS: usize = transaction::MAX_QUEUED;

    /// Returns a transaction of [`COMMANDS`] commands that reply `word`, and a `PING` after it.
    fn transaction(word: &str) -> Vec<u8> {
        let echo = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{word}\r\n", word.len()).repeat(COMMANDS);
        format!("*1\r\n$5\r\nMULTI\r\n{echo}*1\r\n$4\r\nEXEC\r\n*1\r\n$4\r\nPING\r\n").into()
    }

    #[tokio::test]
    async fn the_replies_of_a_transaction_are_sent_in_parts() {
        let limiter = Arc::new(Limiter::new(Policy::default(), Memory::default()));
        let (access, latency) = (Access::Open, Histogram::default());
        let decide = |request: DecisionRequest<'_>| limiter.decide(request);
        let mut dispatcher = Dispatcher::new(&limiter, &access, &latency, decide);
        let word = "x".repeat(200);
        let (mut input, mut parts) = (transaction(&word), Vec::new());
        let mut progress = Progress::Sending;
        while progress == Progress::Sending {
            progress = dispatcher.answer(&mut input).await;
            let replies = dispatcher.replies();
            parts.push(String::from_utf8(replies.as_bytes().to_vec()).unwrap());
            replies.clear(MAX_REPLIES);
        }
        assert_eq!((progress, dispatcher.queued_bytes()), (Progress::Answered, 0));
        let longest = parts.iter().map(String::len).max().unwrap();
        assert!(longest < MAX_REPLIES + 1_024, "{longest} bytes");
        let queued = "+QUEUED\r\n".repeat(COMMANDS);
        let replies = format!("$200\r\n{word}\r\n").repeat(COMMANDS);
        assert_eq!(parts.concat(), format!("+OK\r\n{queued}*{COMMANDS}\r\n{replies}+PONG\r\n"));
    }

    #[tokio::test]
    async fn a_transaction_ends_when_the_token_of_the_client_is_revoked() {
        let limiter = Arc::new(Limiter::new(Policy::default(), Memory::default()));
        let tokens = Tokens::parse("0123456789abcdef").unwrap();
        let (access, latency) = (Access::Tokens(tokens.clone()), Histogram::default());
        let decide = |request: DecisionRequest<'_>| limiter.decide(request);
        let mut dispatcher = Dispatcher::new(&limiter, &access, &latency, decide);
        let mut input = b"*2\r\n$4\r\nAUTH\r\n$16\r\n0123456789abcdef\r\n".to_vec();
        input.extend(transaction(&"x".repeat(200)));
        assert_eq!(dispatcher.answer(&mut input).await, Progress::Sending);
        assert!(dispatcher.executing.is_some());
        dispatcher.replies().clear(MAX_REPLIES);
        tokens.replace("fedcba9876543210").unwrap();
        assert_eq!(dispatcher.answer(&mut input).await, Progress::End);
        assert!(dispatcher.replies().as_bytes().is_empty());
        assert_eq!(dispatcher.queued_bytes(), 0);
    }
}
