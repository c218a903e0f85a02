//! Layouts, datatypes and views: what is accepted encodes to itself, and answers every question.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pio_layout::{Datatype, Layout, View};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(layout) = Layout::decode(&mut &*bytes) {
        let mut again = Vec::new();
        layout.encode(&mut again);
        assert_eq!(Layout::decode(&mut &again[..]), Ok(layout.clone()));
        let size = layout.size();
        for position in [0, size / 2, size.saturating_sub(1)] {
            if let Some(offset) = layout.offset_of(position).filter(|_| layout.is_monotone()) {
                assert_eq!(layout.position_at_or_after(offset), position);
            }
            layout.runs(position..size).take(20).for_each(|run| assert!(run.size() > 0));
        }
        layout.clip(1, layout.upper_bound());
    }
    if let Ok(view) = View::decode(&mut &*bytes) {
        for position in [0, view.limit() / 2, u64::MAX] {
            if let Some(offset) = view.offset_of(position) {
                assert_eq!(view.position_at_or_after(offset), position);
            }
        }
        view.extents(5..u64::MAX).take(20).for_each(drop);
    }
    if let Ok(datatype) = Datatype::decode(&mut &*bytes) {
        let _ = datatype.repeated(3);
    }
});
