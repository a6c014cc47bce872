//! A call: the commands that are sent to a server in one write, and their replies.

use redis::{Cmd, Pipeline, RedisResult, Value};

use super::route::Route;
use crate::connection::Connection;

/// One command, or several commands that are written together.
pub(super) enum Call {
    One(Cmd),
    Several {
        commands: Pipeline,
        /// The number of replies to all commands.
        replies: usize,
        /// The indexes of the replies that contain answers to jobs.
        answers: Vec<usize>,
    },
}

impl Call {
    /// Creates a call that consists of `commands`. Each command comes with the route of its jobs.
    pub(super) fn of(commands: impl ExactSizeIterator<Item = (Route, Cmd)>) -> Self {
        let mut commands = commands.peekable();
        if commands.len() == 1
            && let Some((_, command)) = commands.next_if(|(route, _)| *route != Route::Asking)
        {
            return Self::One(command);
        }
        let (mut several, mut replies, mut answers) = (redis::pipe(), 0, Vec::new());
        for (route, command) in commands {
            if route == Route::Asking {
                // `ASKING` applies only to the next command.
                several.cmd("ASKING");
                replies += 1;
            }
            several.add_command(command);
            answers.push(replies);
            replies += 1;
        }
        Self::Several { commands: several, replies, answers }
    }

    /// Sends the call over `connection` and waits, without a time limit, for the replies. Returns
    /// one result for each command with jobs: the reply, or the error that the server returned. An
    /// error of the whole call means that the connection failed.
    pub(super) async fn send(
        &self,
        connection: &Connection,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::One(command) => Ok(vec![connection.call(command).await]),
            Self::Several { commands, replies, answers } => {
                let mut handle = connection.handle();
                let replies = handle.send_packed_commands(commands, 0, *replies).await?;
                let replies = replies.into_iter().enumerate();
                let answers = replies.filter(|(index, _)| answers.binary_search(index).is_ok());
                Ok(answers.map(|(_, reply)| reply.extract_error()).collect())
            }
        }
    }
}
