//! Counts the instructions of a server for a decision with valgrind. Other programs on the machine
//! do not affect the number. Kernel instructions are not included.

use std::ffi::OsString;
use std::process::Command;

use super::case::Case;
use super::contender::{Contender, Programs};
use super::load::LoadError;
use crate::server::Server;

/// The number of decisions before the count begins. After that, both runs make [`WARM`] decisions,
/// and the longer run makes [`COUNTED`] further decisions.
const FIRST: usize = 200;
const WARM: usize = 2_000;
const COUNTED: usize = 4_000;

/// Returns the number of instructions of the contender `who` for one decision of `case`. The number
/// is computed from the difference of two runs of different length, which excludes the connections
/// and the shutdown. The function writes callgrind's profile of the longer run to `profile`. The
/// profile excludes the start of the server, because the calibration of clocks takes a varying
/// number of instructions.
///
/// # Errors
/// If valgrind is missing, or the server fails under valgrind.
pub async fn per_decision(
    case: &Case,
    who: Contender,
    programs: &Programs,
    profile: &OsString,
) -> Result<u64, LoadError> {
    let short = run(case, who, programs, profile, WARM).await?;
    let long = run(case, who, programs, profile, WARM + COUNTED).await?;
    Ok(long.saturating_sub(short) / COUNTED as u64)
}

async fn run(
    case: &Case,
    who: Contender,
    programs: &Programs,
    profile: &OsString,
    decisions: usize,
) -> Result<u64, LoadError> {
    let server = Server::start(|port| under_valgrind(&who.command(programs, port), profile))?;
    // A server can listen before its start is complete. The start is complete when it has answered
    // a request.
    case.send(who, server.address(), &case.subjects(1, FIRST)).await?;
    forget_the_start(&server)?;
    case.send(who, server.address(), &case.subjects(0, decisions)).await?;
    let output = server.end()?;
    collected(&output).ok_or_else(|| format!("valgrind printed no number: {output}").into())
}

fn under_valgrind(command: &Command, profile: &OsString) -> Command {
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(profile);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--num-callers=1"]).arg(out);
    valgrind.arg(command.get_program()).args(command.get_args());
    valgrind
}

/// Sets callgrind's count of instructions to zero, to exclude the start of the server.
fn forget_the_start(server: &Server) -> Result<(), LoadError> {
    let id = server.id().to_string();
    let output = Command::new("callgrind_control").args(["--zero", &id]).output()?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("callgrind_control, which comes with valgrind, cannot reset the count: {output}")
        .into())
}

/// Returns the number after `Collected :` in valgrind's output.
fn collected(output: &str) -> Option<u64> {
    let (_, rest) = output.rsplit_once("Collected :")?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_found() {
        let output = "==1== Events    : Ir\n==1== Collected : 12345\n==1==\n";
        assert_eq!(super::collected(output), Some(12_345));
        assert_eq!(super::collected("killed"), None);
    }
}
