//! The queue of lines and the thread that writes them.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use http::StatusCode;
use tollgate::{Clock, SystemClock};

use super::format::{OTHER_REASON, Record};
use super::{Format, Written};

/// The most lines that wait to be written. Further lines are dropped and counted.
const MAX_QUEUED: usize = 16_384;

/// The time after which the thread that writes, if it is idle, checks whether to open the file
/// again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The shortest time between two warnings about lines that could not be written.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The access log. Closing the log writes the lines that are still in the queue.
#[derive(Debug)]
pub(crate) struct AccessLog {
    lines: Lines,
    thread: JoinHandle<()>,
}

/// The sending end of the log's queue, to which every request adds its line.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    queue: SyncSender<String>,
    state: Arc<State>,
    format: Format,
    written: Written,
}

#[derive(Debug, Default)]
struct State {
    dropped: AtomicU64,
    reopens: AtomicBool,
    ends: AtomicBool,
}

/// The destination of the lines.
#[derive(Debug)]
enum Target {
    Stdout,
    File(PathBuf),
}

impl AccessLog {
    /// Opens the file, or standard output for `-`, and starts the thread that writes.
    pub(crate) fn open(path: &Path, format: Format, written: Written) -> io::Result<Self> {
        let target =
            if path.as_os_str() == "-" { Target::Stdout } else { Target::File(path.to_owned()) };
        let output = target.open()?;
        let (queue, lines) = sync_channel(MAX_QUEUED);
        let state = Arc::<State>::default();
        let writer = Writer { target, output, lines, state: Arc::clone(&state), warned_at: None };
        let thread = thread::Builder::new().name("access log".to_owned()).spawn(|| writer.run())?;
        Ok(Self { lines: Lines { queue, state, format, written }, thread })
    }

    /// Returns the sending end of the queue.
    pub(crate) fn lines(&self) -> Lines {
        self.lines.clone()
    }

    /// Writes the lines that are still in the queue, and ends the thread.
    pub(crate) fn close(self) {
        self.lines.state.ends.store(true, Ordering::Relaxed);
        drop(self.lines);
        // An error means that the thread has panicked. Nothing more can be written then.
        let _ = self.thread.join();
    }
}

impl Lines {
    /// Adds the line of a request that the proxy rejected because the head of the request is
    /// malformed or too large. Of the request, the line contains only the client and the status.
    pub(crate) fn add_rejected(&self, client: IpAddr, status: StatusCode) {
        self.add(&Record {
            time: SystemClock.now().as_millis(),
            client: Some(client),
            request: None,
            host: None,
            referer: None,
            user_agent: None,
            status,
            bytes: 0,
            duration: Duration::ZERO,
            refused_by: Some(OTHER_REASON.to_owned()),
        });
    }

    /// Adds the line of a request, unless the log contains only refusals and the request was not
    /// refused.
    pub(super) fn add(&self, record: &Record) {
        if self.written == Written::Refusals && record.refused_by.is_none() {
            return;
        }
        if self.queue.try_send(record.line(self.format)).is_err() {
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes the thread open the file again, after a log rotation has renamed the file.
    pub(crate) fn reopen(&self) {
        self.state.reopens.store(true, Ordering::Relaxed);
    }

    /// Returns the number of lines that were not written.
    pub(crate) fn dropped(&self) -> u64 {
        self.state.dropped.load(Ordering::Relaxed)
    }
}

impl Target {
    fn open(&self) -> io::Result<Output> {
        Ok(match self {
            Self::Stdout => Output::Stdout(io::stdout()),
            Self::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path)?;
                Output::File(BufWriter::new(file))
            }
        })
    }
}

#[derive(Debug)]
enum Output {
    Stdout(io::Stdout),
    File(BufWriter<File>),
}

impl Output {
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.write_all(line.as_bytes()),
            Self::File(file) => file.write_all(line.as_bytes()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

#[derive(Debug)]
struct Writer {
    target: Target,
    output: Output,
    lines: Receiver<String>,
    state: Arc<State>,
    warned_at: Option<Instant>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let line = match self.lines.try_recv() {
                Ok(line) => Ok(line),
                // No line waits, so everything that was written is flushed and becomes visible.
                Err(_) => {
                    let flushed = self.output.flush();
                    self.note(flushed, 0);
                    self.lines.recv_timeout(LOOK_EVERY)
                }
            };
            if self.state.reopens.swap(false, Ordering::Relaxed) {
                self.reopen();
            }
            match line {
                Ok(line) => {
                    let written = self.output.write(&line);
                    self.note(written, 1);
                }
                Err(RecvTimeoutError::Timeout) if !self.state.ends.load(Ordering::Relaxed) => {}
                Err(_) => return,
            }
        }
    }

    /// Opens the file that has the log's name now, and writes further lines to it. If this file
    /// cannot be opened, the previous file stays in use.
    fn reopen(&mut self) {
        let flushed = self.output.flush();
        self.note(flushed, 0);
        match self.target.open() {
            Ok(output) => self.output = output,
            Err(error) => self.note(Err(error), 0),
        }
    }

    /// If `result` is an error, adds `lines` to the number of lines that were not written, and logs
    /// the error at most once a minute.
    fn note(&mut self, result: io::Result<()>, lines: u64) {
        let Err(error) = result else { return };
        self.state.dropped.fetch_add(lines, Ordering::Relaxed);
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned_at = Some(Instant::now());
            tracing::warn!("the access log cannot be written: {error}; lines are dropped");
        }
    }
}
