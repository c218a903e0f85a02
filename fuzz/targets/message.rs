//! What ranks send each other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pio_plan::{Message, Piece};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    let _ = Piece::decode(&mut &*bytes);
});
