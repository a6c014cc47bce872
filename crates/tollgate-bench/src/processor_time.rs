//! The processor time of other processes.

use std::fs;
use std::io::{self, Error, ErrorKind};
use std::time::Duration;

/// Returns the processor time that all threads of the process `id` have used since their start.
///
/// # Errors
/// If the kernel does not provide the processor time. The source is Linux'
/// `/proc/PID/task/TID/schedstat`, which counts nanoseconds. `/proc/PID/stat` counts only
/// hundredths of a second.
pub fn of_process(id: u32) -> io::Result<Duration> {
    let mut whole = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{id}/task"))? {
        let line = fs::read_to_string(task?.path().join("schedstat"))?;
        let nanos = line.split_ascii_whitespace().next().and_then(|ran| ran.parse().ok());
        let unknown =
            || Error::new(ErrorKind::InvalidData, format!("unexpected schedstat line {line:?}"));
        whole += Duration::from_nanos(nanos.ok_or_else(unknown)?);
    }
    Ok(whole)
}

/// Returns the part of the processor time of process `id` that its threads spent in the kernel, in
/// steps of a hundredth of a second.
///
/// # Errors
/// If the kernel does not provide the processor time. The source is Linux' `/proc/PID/stat`.
pub fn in_kernel(id: u32) -> io::Result<Duration> {
    /// The unit in which `/proc/PID/stat` counts processor time, which is the same on every
    /// platform of Linux.
    const TICK: Duration = Duration::from_millis(10);
    /// The index of the processor time in the kernel among the values that follow the program's
    /// name in `/proc/PID/stat`.
    const PLACE: usize = 12;
    let line = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let ticks = line
        .rsplit_once(") ")
        .and_then(|(_, values)| values.split_ascii_whitespace().nth(PLACE)?.parse::<u32>().ok());
    let unknown = || Error::new(ErrorKind::InvalidData, format!("unexpected stat line {line:?}"));
    Ok(TICK * ticks.ok_or_else(unknown)?)
}
