//! Measures the machine it runs on, with files in the folder given (or the current one), and prints its description.

use std::path::Path;

use pio_machine::{CalibrateError, Machine, Spreads, calibrate};

fn main() -> Result<(), CalibrateError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut spreads = Spreads::default();
    let machine = calibrate(Path::new(&folder), &mut spreads, None, &mut |what| eprintln!("{what}"))?;
    println!("{}", machine.to_toml_with(Machine::how_measured(), &spreads));
    Ok(())
}
