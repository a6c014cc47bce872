//! The commands of the module.
//!
//! Each command, except `CL.THROTTLE`, takes an argument and keys, as in `TOLLGATE.STEP argument
//! [key …]`.
//!
//! - `TOLLGATE.STEP` executes jobs. A server that is out of memory rejects it.
//! - `TOLLGATE.TIGHT` executes jobs without creating state, and also runs without free memory.
//! - `TOLLGATE.LOOK` executes jobs that only read, also on replicas.
//! - `TOLLGATE.APPLY clock argument [key …]` repeats a command of a primary at the time `clock` of
//!   the primary's clock, in milliseconds as seven bytes, little-endian. A primary sends
//!   `TOLLGATE.APPLY` to replicas and to the append-only file. If the effect of a command does not
//!   depend on the clock, the primary sends the original command instead. No client needs
//!   `TOLLGATE.APPLY`.
//!
//! `CL.THROTTLE` is the command of redis-cell, another module.
#![allow(missing_docs, reason = "the macro of the server interface generates undocumented items")]
#![allow(clippy::needless_pass_by_value, reason = "the macro passes the words by value")]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{SystemTime, UNIX_EPOCH};

use redis_module::{
    Context, ContextFlags, RedisError, RedisResult, RedisString, RedisValue, raw, redis_module,
};
use tollgate_core::Timestamp;

use crate::answer::Reply;
use crate::buffers::{Buffers, Change};
use crate::error::CommandError;
use crate::keyspace::{Access, OpenKeys, Repetition, ServerKeys};
use crate::reader::Reader;
use crate::request::{Creation, Location, Request};
use crate::step;
use crate::throttle::Throttle;

#[cfg(not(test))]
type Allocator = redis_module::alloc::RedisAlloc;
#[cfg(not(test))]
const ALLOCATOR: Allocator = redis_module::alloc::RedisAlloc;
// A test program runs without a server, and so uses the allocator of the system.
#[cfg(test)]
type Allocator = std::alloc::System;
#[cfg(test)]
const ALLOCATOR: Allocator = std::alloc::System;

/// The version that `MODULE LIST` shows. It applies to the commands and to the stored values.
const VERSION: i32 = 1;

redis_module! {
    name: "tollgate",
    version: VERSION,
    allocator: (Allocator, ALLOCATOR),
    data_types: [],
    commands: [
        ["tollgate.step", on_step, "write deny-oom fast", 2, -1, 1, ""],
        ["tollgate.tight", on_tight, "write fast", 2, -1, 1, ""],
        ["tollgate.look", on_look, "readonly fast", 2, -1, 1, ""],
        ["tollgate.apply", on_apply, "write fast", 3, -1, 1, ""],
        ["cl.throttle", on_throttle, "write deny-oom fast", 1, 1, 1, ""],
    ],
}

/// The kind of a command. The name of the command, such as `TOLLGATE.STEP`, determines the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Step,
    Tight,
    Look,
    Apply,
}

/// A received command: its kind, its clock, its argument and the names of its keys.
struct Command<'a> {
    context: &'a Context,
    form: Form,
    /// The time of the primary's clock if the command is `TOLLGATE.APPLY`, otherwise `None`.
    clock: Option<&'a RedisString>,
    argument: &'a RedisString,
    names: &'a [RedisString],
}

thread_local! {
    static BUFFERS: RefCell<(Buffers, OpenKeys)> = RefCell::default();
}

fn on_step(context: &Context, args: Vec<RedisString>) -> RedisResult {
    answer(context, &args, Form::Step)
}

fn on_tight(context: &Context, args: Vec<RedisString>) -> RedisResult {
    answer(context, &args, Form::Tight)
}

fn on_look(context: &Context, args: Vec<RedisString>) -> RedisResult {
    answer(context, &args, Form::Look)
}

fn on_apply(context: &Context, args: Vec<RedisString>) -> RedisResult {
    answer(context, &args, Form::Apply)
}

fn on_throttle(context: &Context, args: Vec<RedisString>) -> RedisResult {
    let [_, key, args @ ..] = &args[..] else { return Err(RedisError::WrongArity) };
    let run = || throttle(context, key, args);
    let failed = |_| Err(RedisError::String(CommandError::Panicked.to_string()));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(failed)
}

fn throttle(context: &Context, key: &RedisString, args: &[RedisString]) -> RedisResult {
    let args: Vec<&[u8]> = args.iter().map(RedisString::as_slice).collect();
    let throttle = Throttle::parse(&args).map_err(RedisError::String)?;
    let clock = server_clock();
    let names = std::slice::from_ref(key);
    let failed = |error: CommandError| RedisError::String(error.to_string());
    let mut open = OpenKeys::default();
    let mut keys = ServerKeys::new(context, names, Access::Write, &mut open).map_err(failed)?;
    let throttled = keys.read(0, |value| value.map(|value| throttle.charge(value, clock)));
    let throttled = throttled.map_err(|()| RedisError::WrongType)?;
    if let Some((value, live)) = throttled.written {
        keys.write_value(0, &value, live).map_err(failed)?;
        let end = clock.after(live).as_millis().to_string();
        context.replicate("SET", &[key.as_slice(), &value, b"PXAT", end.as_bytes()][..]);
    }
    Ok(RedisValue::Array(throttled.answer.map(RedisValue::Integer).into()))
}

/// Executes a command and sends its reply to the client. If the code panics, the function returns
/// an error, because a panic must not unwind into the server.
fn answer(context: &Context, args: &[RedisString], form: Form) -> RedisResult {
    let (clock, args) = match (form, args) {
        (Form::Apply, [_, clock, args @ ..]) => (Some(clock), args),
        (_, [_, args @ ..]) => (None, args),
        _ => return Err(RedisError::WrongArity),
    };
    let [argument, names @ ..] = args else { return Err(RedisError::WrongArity) };
    let command = Command { context, form, clock, argument, names };
    let run = || {
        BUFFERS.with_borrow_mut(|(buffers, open)| {
            execute(&command, buffers, open)?;
            let reply = &buffers.lists.reply;
            let (begin, length) = (reply.as_ptr().cast(), reply.len());
            raw::reply_with_string_buffer(context.get_raw(), begin, length);
            Ok(())
        })
    };
    match catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(CommandError::Panicked)) {
        Ok(()) => Ok(RedisValue::NoReply),
        Err(error) => Err(RedisError::String(error.to_string())),
    }
}

/// Executes a command, and writes its reply to `buffers`. Also writes the changed keys, and
/// replicates the changes.
fn execute(
    command: &Command<'_>,
    buffers: &mut Buffers,
    open: &mut OpenKeys,
) -> Result<(), CommandError> {
    let Command { context, form, argument, names, .. } = *command;
    let clock = match command.clock {
        Some(clock) => Timestamp::from_millis(Reader::new(clock.as_slice()).exact("clock")?),
        None => server_clock(),
    };
    buffers.clear();
    let Buffers { rules, locations, lists } = buffers;
    let request = Request::parse(argument.as_slice(), names.len(), rules, locations)?;
    if form == Form::Tight && request.creation == Creation::Allowed {
        return Err(CommandError::Invalid("flags: this command creates no state"));
    }
    let deadline = request.deadline.filter(|_| form != Form::Apply);
    if deadline.is_some_and(|deadline| clock > deadline) && !is_repeated(context) {
        Reply::late(&mut lists.reply, clock);
        return Ok(());
    }
    let access = if form == Form::Look { Access::Read } else { Access::Write };
    let mut keys = ServerKeys::new(context, names, access, open)?;
    step::run(request, &mut keys, deadline.map(|_| clock), lists)?;
    let (changes, values) = (&mut lists.changes, &lists.values);
    if changes.is_empty() {
        return Ok(());
    }
    if access == Access::Read {
        return Err(CommandError::Writes);
    }
    let repetition = keys.write(changes, values, clock)?;
    let is_in_table = |change: &Change| matches!(change.location, Location::Entry(_));
    if form == Form::Apply {
        context.replicate_verbatim();
    } else if !changes.iter().any(is_in_table) {
        keys.replicate_changes(changes, values, clock);
    } else if repetition == Repetition::AsIs {
        context.replicate_verbatim();
    } else {
        keys.replicate_command(argument, clock);
    }
    Ok(())
}

/// Returns whether the command comes from a primary or from the append-only file. The deadline of
/// such a command is not checked: it had not passed when the primary executed the command.
fn is_repeated(context: &Context) -> bool {
    context.get_flags().intersects(ContextFlags::REPLICATED | ContextFlags::LOADING)
}

/// Returns the time of the server's clock, which is used only for deadlines and expiry. The time of
/// a decision is part of the command.
fn server_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
