//! What a server knows of itself, as far as it matters to limits.

/// Lines of `stats`; what a server leaves out is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Its process.
    pub(crate) pid: u64,
    /// Seconds since it started.
    pub(crate) uptime: u64,
    /// Its time: seconds since the Unix epoch.
    pub(crate) time: u64,
    /// Items that it dropped before their end, for want of memory.
    pub(crate) evictions: u64,
    /// How often it was told to forget everything.
    pub(crate) flushes: u64,
}

impl Stats {
    /// Takes one line, without its `STAT`; what it does not know it passes over.
    pub(super) fn observe(&mut self, line: &[u8]) {
        let Some((name, value)) = std::str::from_utf8(line).ok().and_then(|it| it.split_once(' '))
        else {
            return;
        };
        let place = match name {
            "pid" => &mut self.pid,
            "uptime" => &mut self.uptime,
            "time" => &mut self.time,
            "evictions" => &mut self.evictions,
            "cmd_flush" => &mut self.flushes,
            _ => return,
        };
        *place = value.parse().unwrap_or(0);
    }
}
