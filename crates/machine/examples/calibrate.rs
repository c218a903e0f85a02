//! Measures the machine it runs on, with files in the folder given (or the current one), and prints its description.

use std::path::Path;

use pio_machine::{CalibrateError, Machine, calibrate};

fn main() -> Result<(), CalibrateError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let (machine, spreads) = calibrate(Path::new(&folder), &mut |what| eprintln!("{what}"))?;
    println!("{}", machine.to_toml_with(Machine::how_measured(), &spreads));
    Ok(())
}
