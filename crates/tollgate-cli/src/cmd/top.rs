//! `tollgate top`: shows the decisions of a running node, its top subjects, and its shards.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::{AdminClient, Snapshot, frame};
use crate::failure::Failure;
use crate::output::print;

/// Show what a running node decides: rates, refusals, top subjects, shards
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    listener: AdminClient,
    /// Print one frame with counts since the start, and exit
    #[arg(long)]
    once: bool,
}

/// The time between two frames.
const PERIOD: Duration = Duration::from_secs(1);

/// `OPEN` is the escape sequence that switches to the alternate screen and hides the cursor.
/// `CLOSE` switches back and shows the cursor.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";
/// `HOME` is the escape sequence that moves the cursor to the upper left. `REST_OF_LINE` and
/// `REST_OF_SCREEN` clear everything after the cursor in the line and on the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let first = Snapshot::take(&flags.listener).await?;
        if flags.once {
            return print(&frame(&first, None));
        }
        if !io::stdout().is_terminal() {
            return Err("standard output is not a terminal: use `--once` to print one frame".into());
        }
        watch(&flags.listener, first).await
    })
}

/// Draws frames until the process is interrupted or the node does not respond.
async fn watch(listener: &AdminClient, first: Snapshot) -> Result<(), Failure> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let _screen = AlternateScreen::open()?;
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    draw(&frame(&first, None))?;
    let mut before = first;
    loop {
        tokio::select! {
            _ = interrupted.recv() => return Ok(()),
            _ = terminated.recv() => return Ok(()),
            _ = ticks.tick() => {}
        }
        let now = Snapshot::take(listener).await?;
        draw(&frame(&now, Some(&before)))?;
        before = now;
    }
}

/// Draws the part of `text` that fits on the terminal.
fn draw(text: &str) -> io::Result<()> {
    let size = tcgetwinsize(io::stdout())?;
    // A terminal that does not report its size gets the whole text.
    let fits = |size: u16| if size == 0 { usize::MAX } else { size.into() };
    let (rows, columns) = (fits(size.ws_row), fits(size.ws_col));
    let mut screen = HOME.to_owned();
    for (index, line) in text.lines().take(rows).enumerate() {
        if index > 0 {
            screen += "\r\n";
        }
        screen.extend(line.chars().take(columns));
        screen += REST_OF_LINE;
    }
    screen += REST_OF_SCREEN;
    let mut out = io::stdout();
    out.write_all(screen.as_bytes())?;
    out.flush()
}

/// The alternate screen. Dropping this value restores the terminal.
struct AlternateScreen;

impl AlternateScreen {
    fn open() -> io::Result<Self> {
        let mut out = io::stdout();
        out.write_all(OPEN.as_bytes())?;
        out.flush()?;
        Ok(Self)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let mut out = io::stdout();
        // An error here cannot be reported any more.
        let _ = out.write_all(CLOSE.as_bytes()).and_then(|()| out.flush());
    }
}
