//! The statistics of a server, as far as the memcached store uses them.

/// The values that the command `stats` returns. Values that the server omits are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// The server's process id.
    pub(crate) pid: u64,
    /// The number of seconds since the server started.
    pub(crate) uptime: u64,
    /// The server's time in seconds since the Unix epoch.
    pub(crate) time: u64,
    /// The number of items that the server dropped before their expiry to free memory.
    pub(crate) evictions: u64,
    /// The number of executions of `flush_all`.
    pub(crate) flushes: u64,
}

impl Stats {
    /// Parses one line of statistics without its `STAT` prefix. Ignores unknown names.
    pub(super) fn observe(&mut self, line: &[u8]) {
        let Some((name, value)) = std::str::from_utf8(line).ok().and_then(|it| it.split_once(' '))
        else {
            return;
        };
        let field = match name {
            "pid" => &mut self.pid,
            "uptime" => &mut self.uptime,
            "time" => &mut self.time,
            "evictions" => &mut self.evictions,
            "cmd_flush" => &mut self.flushes,
            _ => return,
        };
        *field = value.parse().unwrap_or(0);
    }
}
