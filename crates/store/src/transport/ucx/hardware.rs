//! Whether there is what UCX is for.

/// Whether this machine has hardware that UCX moves data with, past the operating system, and a cable in it.
pub fn has_hardware() -> bool {
    let folders = |path: &std::path::Path| {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    folders("/sys/class/infiniband".as_ref())
        .flat_map(|device| folders(&device.join("ports")).collect::<Vec<_>>())
        .any(|port| std::fs::read_to_string(port.join("state")).is_ok_and(|state| state.contains("ACTIVE")))
}
