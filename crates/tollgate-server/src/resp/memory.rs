//! The memory that incomplete commands and transactions use, over all connections of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::wire::{MAX_IDLE_BUFFER, MAX_READ};

/// The most bytes that incomplete commands and transactions of all connections of a listener may
/// use, beyond 16 KiB for each connection. A connection that needs more is closed.
pub const MAX_COMMAND_MEMORY: usize = 64 * 1024 * 1024;

/// The number of bytes that the connections of a listener use together, and the maximum.
#[derive(Debug)]
pub(super) struct CommandMemory {
    used: AtomicUsize,
    most: usize,
}

/// The bytes that one connection uses. Dropping this value frees the bytes.
#[derive(Debug)]
pub(super) struct CommandBytes {
    memory: Arc<CommandMemory>,
    held: usize,
}

/// The error of a connection that needs more memory than is left of [`MAX_COMMAND_MEMORY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

/// The text of the error reply before a connection is closed for lack of memory.
pub(super) const NO_MEMORY: &str = "ERR out of memory for incomplete commands: other clients have \
                                    sent parts of long commands; send shorter ones, or try later";

impl Default for CommandMemory {
    fn default() -> Self {
        Self::new(MAX_COMMAND_MEMORY)
    }
}

impl CommandMemory {
    pub(super) const fn new(most: usize) -> Self {
        Self { used: AtomicUsize::new(0), most }
    }
}

impl CommandBytes {
    pub(super) const fn new(memory: Arc<CommandMemory>) -> Self {
        Self { memory, held: 0 }
    }

    /// Makes room for one more read at the end of `input`. `queued` is the size of the connection's
    /// transaction, which uses the same memory. Returns an error if not enough memory is free.
    pub(super) fn make_room(&mut self, input: &mut Vec<u8>, queued: usize) -> Result<(), NoMemory> {
        let needed = input.len() + MAX_READ;
        let capacity = match needed > input.capacity() {
            true => needed.max(2 * input.capacity()),
            false => input.capacity(),
        };
        self.hold(capacity.saturating_sub(MAX_IDLE_BUFFER) + queued)?;
        input.reserve_exact(capacity - input.len());
        Ok(())
    }

    /// Sets the number of bytes that the connection uses to `bytes`. Returns an error, and changes
    /// nothing, if all connections together would use too much.
    fn hold(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let used = &self.memory.used;
        if bytes <= self.held {
            used.fetch_sub(self.held - bytes, Ordering::Relaxed);
        } else {
            let (more, most) = (bytes - self.held, self.memory.most);
            used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(more).filter(|used| *used <= most)
            })
            .map_err(|_| NoMemory)?;
        }
        self.held = bytes;
        Ok(())
    }
}

impl Drop for CommandBytes {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_commands_of_all_connections_share_one_bound() {
        let memory = Arc::new(CommandMemory::new(3 * MAX_IDLE_BUFFER));
        let mut all: Vec<_> =
            (0..100).map(|_| (CommandBytes::new(Arc::clone(&memory)), Vec::new())).collect();
        // Short commands need nothing of the shared memory.
        for (bytes, input) in &mut all {
            bytes.make_room(input, 0).unwrap();
        }
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
        let refused = all.iter_mut().filter_map(|(bytes, input)| {
            input.resize(MAX_IDLE_BUFFER, 0);
            bytes.make_room(input, 0).err()
        });
        assert_eq!(refused.count(), 97);
        for (_, input) in &all {
            assert!(input.capacity() <= 2 * MAX_IDLE_BUFFER);
        }
        all.clear();
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_transaction_counts() {
        let memory = Arc::new(CommandMemory::new(1_000));
        let mut bytes = CommandBytes::new(Arc::clone(&memory));
        assert_eq!(bytes.make_room(&mut Vec::new(), 1_001), Err(NoMemory));
        bytes.make_room(&mut Vec::new(), 1_000).unwrap();
        bytes.make_room(&mut Vec::new(), 0).unwrap();
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
