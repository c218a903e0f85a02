//! Whether this is a virtual machine whose host gets the memory that is free.

use std::fs;
use std::path::Path;

/// Where Linux has the devices by which a virtual machine does that.
const BALLOONS: &str = "/sys/bus/virtio/drivers/virtio_balloon";
/// `VIRTIO_BALLOON_F_REPORTING`: the bit by which a device says that it takes free pages (virtio 1.2, section 5.5.3).
const TAKES_FREE_PAGES: usize = 5;

/// What a user is to know who predicts runs on such a machine; none on another.
pub(crate) fn warning() -> Option<&'static str> {
    takes_free_pages(Path::new(BALLOONS)).then_some(
        "this virtual machine leaves free memory to its host, and waits when it takes it again: at times writes of new data are five \
         to ten times as slow, which no prediction knows beforehand",
    )
}

fn takes_free_pages(balloons: &Path) -> bool {
    let Ok(devices) = fs::read_dir(balloons) else { return false };
    devices.flatten().any(|device| {
        // A character for each bit, the lowest first.
        let features = fs::read(device.path().join("features")).unwrap_or_default();
        features.get(TAKES_FREE_PAGES) == Some(&b'1')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_says_what_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let says = |features: &str| {
            let device = folder.path().join("virtio0");
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("features"), features).unwrap();
            takes_free_pages(folder.path())
        };
        assert!(!takes_free_pages(folder.path()));
        assert!(says("0110010100000000\n"));
        assert!(!says("0110000100000000\n"));
        assert!(!says("0110"));
        assert!(!takes_free_pages(&folder.path().join("none")));
    }
}
