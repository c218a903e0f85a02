//! How a file is gone through, as a layout.

use crate::explanation::FileStatistics;
use crate::pattern::Pattern;

/// Part of the accesses that makes an order.
const MOST: f64 = 0.9;
/// Part of the accesses that makes strides, or chance: what remains are the jumps from one series to the next.
const MANY: f64 = 0.5;

/// The order in which a file's bytes are accessed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// One access a handle: nothing follows.
    Once,
    /// One behind the other.
    Sequential,
    /// Pieces at equal distances.
    Strided {
        /// Mean size of a piece, bytes.
        bytes: f64,
        /// Most frequent distance from the start of one to the start of the next, bytes; negative: backwards.
        stride: i64,
    },
    /// Here and there.
    Random,
    /// Several of these.
    Mixed,
}

impl Order {
    fn of(pattern: &Pattern, mean_bytes: Option<f64>) -> Option<Order> {
        let followers = (pattern.consecutive + pattern.strided + pattern.random) as f64;
        if followers == 0.0 {
            return (pattern.first > 0).then_some(Order::Once);
        }
        let part = |count: u64| count as f64 / followers;
        Some(if part(pattern.consecutive) >= MOST {
            Order::Sequential
        } else if let Some(stride) = pattern.dominant_stride_bytes().filter(|_| part(pattern.strided) >= MANY)
        {
            Order::Strided { bytes: mean_bytes.unwrap_or(0.0), stride }
        } else if part(pattern.random) >= MANY {
            Order::Random
        } else {
            Order::Mixed
        })
    }
}

impl FileStatistics {
    /// In what order the program accesses it; none if it does not.
    pub fn order(&self) -> Option<Order> {
        Order::of(&self.program_pattern, self.program.data().mean_bytes())
    }

    /// In what order the accesses reach it; none if none does.
    pub fn order_at_file_system(&self) -> Option<Order> {
        Order::of(&self.file_system_pattern, self.file_system.data().mean_bytes())
    }

    /// How often each of its bytes is read and written by the program, on average.
    pub fn times_moved(&self) -> Option<(f64, f64)> {
        let times = |bytes: u64| bytes as f64 / self.size_bytes as f64;
        (self.size_bytes > 0).then(|| (times(self.program.read.bytes), times(self.program.write.bytes)))
    }

    /// Mean number of the program's calls on it that are under way at the same time, while at least one is.
    pub fn concurrency(&self) -> Option<f64> {
        (self.busy_ns > 0).then(|| self.program.all().time_ns as f64 / self.busy_ns as f64)
    }
}
