//! Fits the two machines of Thakur, Gropp and Lusk (1996) to their small case, under every assumption on where time is
//! spent that the small case leaves open, and predicts the large case with each.
//!
//! `cargo run --release -p pio-studies --example fit_thakur`

use pio_machine::Machine;
use pio_sim::workload::Collapse;
use pio_studies::thakur::{MACHINES, Seat, Seats, ThakurError, fit, run};
use pio_trace::Op;

fn main() -> Result<(), ThakurError> {
    for name in MACHINES {
        for open in [Seat::Server, Seat::Caller] {
            for data in [Seat::Server, Seat::Caller] {
                let seats = Seats { open, data, ..Seats::of(name) };
                let machine = fit(&Machine::built_in(name)?, seats)?;
                let adopted = if seats == Seats::of(name) { ", adopted" } else { "" };
                println!("\n# {name}: opens at the {open:?}, data at the {data:?}{adopted}");
                for (case, size) in [("small", Collapse::SMALL), ("large", Collapse::LARGE)] {
                    let found = run(&machine, &size)?;
                    let totals = [Op::Open, Op::Close, Op::Read, Op::Write, Op::Communicate]
                        .map(|op| format!("{} {:.1} s", op.name(), found.operation(op).time.seconds()));
                    println!("{case}: {}", totals.join(", "));
                }
                if seats == Seats::of(name) {
                    println!("{}", machine.to_toml("fitted"));
                }
            }
        }
    }
    Ok(())
}
