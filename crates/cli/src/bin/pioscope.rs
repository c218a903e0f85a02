//! The `pioscope` command: everything is in the library.

fn main() -> std::process::ExitCode {
    pio_cli::main()
}
