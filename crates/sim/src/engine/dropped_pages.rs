//! What is cut off or removed leaves memory: the kernel lets go of its pages, and none goes to the device any more.

use pio_machine::Duration;
use pio_trace::Call;

use super::Engine;

impl Engine<'_> {
    /// A rank gives a file another size. How long pages take that leave memory.
    pub(super) fn resize(&mut self, rank: u32, file: u32, call: Call, size: u64) -> Duration {
        let end = &mut self.files[file as usize].end;
        if matches!(call, Call::Fallocate | Call::MpiFilePreallocate) {
            *end = size.max(*end);
            return Duration::ZERO;
        }
        *end = size;
        self.drop_pages(rank, file, size)
    }

    /// A rank removes a file: who opens it then makes it anew. How long pages take that leave memory.
    pub(super) fn remove(&mut self, rank: u32, file: u32) -> Duration {
        let state = &mut self.files[file as usize];
        (state.end, state.is_new, state.is_cold) = (0, true, false);
        self.drop_pages(rank, file, 0)
    }

    /// The pages of a file that begin at `size` or beyond.
    fn drop_pages(&mut self, rank: u32, file: u32, size: u64) -> Duration {
        let state = &mut self.files[file as usize];
        let dropped = state.touched.end_at(size);
        let clean = state.dirty.end_at(size).min(state.dirty_bytes);
        state.dirty_bytes -= clean;
        self.not_on_device(rank, clean);
        self.machine.calls.dropped_pages.map_or(Duration::ZERO, |rate| rate.time_of(dropped))
    }
}
