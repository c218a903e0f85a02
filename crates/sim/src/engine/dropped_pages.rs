//! What is cut off or removed leaves memory: the kernel lets go of its pages, and none goes to the device any more.

use pio_machine::{Duration, Storage};
use pio_trace::Call;

use super::Engine;

impl Engine<'_> {
    /// A rank gives a file another size. How long pages take that leave memory.
    pub(super) fn resize(&mut self, rank: u32, file: u32, call: Call, size: u64) -> Duration {
        let end = &mut self.files[file as usize].end;
        if matches!(call, Call::Fallocate | Call::MpiFilePreallocate) {
            *end = size.max(*end);
            if let Some(shared) = &mut self.shared {
                shared.grow(file, size);
            }
            if let Some(parallel) = &mut self.parallel {
                parallel.grow(file, size);
            }
            return Duration::ZERO;
        }
        self.set_size(file, size);
        let dropped = self.drop_pages(rank, file, size);
        self.time_to_drop(dropped)
    }

    /// A rank opens a file to write it anew. How much longer that takes for what it had.
    pub(super) fn empty(&mut self, rank: u32, file: u32) -> Duration {
        self.set_size(file, 0);
        let dropped = self.drop_pages(rank, file, 0);
        self.files[file as usize].is_rewritten = dropped > 0;
        match &self.machine.calls.rewrites {
            Some(rewrites) if dropped > 0 && self.pages_are_here() => rewrites.open.of(dropped),
            _ => self.time_to_drop(dropped),
        }
    }

    /// How much longer the close of a file takes that was written anew.
    pub(super) fn close_rewritten(&mut self, file: u32) -> Duration {
        let state = &mut self.files[file as usize];
        let is_rewritten = std::mem::take(&mut state.is_rewritten) && state.end > 0;
        let end = state.end;
        let rewrites = self.machine.calls.rewrites.as_ref().filter(|_| is_rewritten && self.pages_are_here());
        rewrites.map_or(Duration::ZERO, |rewrites| rewrites.close.of(end))
    }

    /// A rank removes a file: who opens it then makes it anew. How long pages take that leave memory.
    pub(super) fn remove(&mut self, rank: u32, file: u32) -> Duration {
        let state = &mut self.files[file as usize];
        (state.is_new, state.is_cold, state.has_parts) = (true, false, false);
        state.begun.clear();
        self.set_size(file, 0);
        let dropped = self.drop_pages(rank, file, 0);
        self.time_to_drop(dropped)
    }

    /// A file ends here now, wherever it is.
    fn set_size(&mut self, file: u32, size: u64) {
        self.files[file as usize].end = size;
        if let Some(shared) = &mut self.shared {
            shared.set_size(file, size);
        }
        if let Some(parallel) = &mut self.parallel {
            parallel.set_size(self.now, file, size);
            self.carry_out();
        }
        // Other servers do not know where a file's blocks are, and there may be hundreds of them.
        if size == 0 && matches!(self.machine.storage, Storage::IoNodes { .. }) {
            self.empty_on_servers(file);
        }
    }

    /// The pages of a file that begin at `size` or beyond: their bytes.
    fn drop_pages(&mut self, rank: u32, file: u32, size: u64) -> u64 {
        let state = &mut self.files[file as usize];
        let dropped = state.touched.end_at(size);
        let clean = state.dirty.end_at(size).min(state.dirty_bytes);
        state.dirty_bytes -= clean;
        self.not_on_device(rank, clean);
        dropped
    }

    fn time_to_drop(&self, bytes: u64) -> Duration {
        let rate = self.machine.calls.dropped_pages.filter(|_| self.pages_are_here());
        rate.map_or(Duration::ZERO, |rate| rate.time_of(bytes))
    }

    /// Whether files' pages are in the node's own memory: it was measured there what it takes to let go of them.
    fn pages_are_here(&self) -> bool {
        matches!(self.machine.storage, Storage::Local { .. })
    }
}
