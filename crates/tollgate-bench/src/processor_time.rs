//! Processor time of other processes.

use std::fs;
use std::io::{self, Error, ErrorKind};
use std::time::Duration;

/// The processor time of all threads that process `id` has, since each began.
///
/// # Errors
/// If the kernel does not tell: this is Linux' `/proc/PID/task/TID/schedstat`, in nanoseconds,
/// where `/proc/PID/stat` counts in hundredths of a second.
pub fn of_process(id: u32) -> io::Result<Duration> {
    let mut whole = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{id}/task"))? {
        let line = fs::read_to_string(task?.path().join("schedstat"))?;
        let nanos = line.split_ascii_whitespace().next().and_then(|ran| ran.parse().ok());
        let unknown = || Error::new(ErrorKind::InvalidData, format!("schedstat says {line:?}"));
        whole += Duration::from_nanos(nanos.ok_or_else(unknown)?);
    }
    Ok(whole)
}
