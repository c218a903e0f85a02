//! Machine descriptions and hints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pio_machine::Machine;
use pio_plan::Hints;

fuzz_target!(|text: &str| {
    let _ = Machine::parse("fuzz.toml", text);
    let _ = Hints::parse(text);
});
