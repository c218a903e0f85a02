//! How large traces of recorded programs are.

use crate::common::{compile, folder, record_in};
use pio_trace::Layer;

const ACCESSES: usize = 50_000;

/// Bytes of the trace for each event of a program that accesses files in this pattern.
fn bytes_per_event(pattern: &str) -> f64 {
    let folder = folder();
    let program = compile("cc", "patterns", folder.path(), &["-O1"]);
    let (work, count) = (folder.path().to_path_buf(), ACCESSES.to_string());
    let job = record_in(folder, vec![program.into(), pattern.into(), count.into(), work.into()], |_| {});
    assert!(job.outcome.status.success(), "{pattern}: {:?}", job.outcome);
    let accesses = job.events.iter().filter(|e| e.layer() == Layer::Posix && e.transferred() == 512).count();
    assert_eq!(accesses, ACCESSES, "{pattern}");
    let bytes = std::fs::metadata(job.folder.path().join("job.pio")).expect("the trace").len();
    let each = bytes as f64 / ACCESSES as f64;
    println!("{pattern}: {each:.3} bytes an event");
    each
}

#[test]
fn traces_are_small() {
    for (pattern, most) in [("sequential", 1.0), ("cyclic", 1.0), ("venus", 3.0), ("random", 6.0)] {
        let each = bytes_per_event(pattern);
        assert!(each < most, "{pattern}: {each} bytes an event, expected less than {most}");
    }
}
