//! Prints the report of a made-up trace: `sample_report checkpoints|copy|long`.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use pio_explain::Explanation;

fn main() {
    let (tables, events) = match std::env::args().nth(1).as_deref() {
        Some("copy") => synthetic::copy(),
        Some("long") => synthetic::long_run(64, 1_000_000),
        _ => synthetic::checkpoints(8, 25),
    };
    let explanation = Explanation::of(&tables, events.iter().cloned());
    print!("{}", pio_report::text(&explanation));
}
