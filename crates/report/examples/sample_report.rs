//! Reports of made-up traces, or of a trace file: `sample_report checkpoints|copy|long|FILE.pio [FILE.html]` prints the
//! text and writes the page.

#[path = "../tests/all/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use pio_explain::Explanation;
use pio_report::Prediction;
use pio_trace::Trace;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    if kind.ends_with(".pio") {
        let trace = Trace::open(kind.as_ref())?;
        let explanation = Explanation::of_trace(&trace, &mut |_| {})?;
        print!("{}", pio_report::text(&explanation));
        if let Some(path) = arguments.next() {
            pio_report::html_of_trace(
                &trace,
                &explanation,
                None,
                &[],
                &mut BufWriter::new(File::create(path)?),
            )?;
        }
        return Ok(());
    }
    let (tables, events) = match kind.as_str() {
        "copy" => synthetic::copy(),
        "long" => synthetic::long_run(64, 1_000_000),
        _ => synthetic::checkpoints(8, 25),
    };
    let explanation = Explanation::of(&tables, events.iter().cloned());
    let predictions = if kind == "checkpoints" { predictions() } else { Vec::new() };
    print!("{}\n{}", pio_report::text(&explanation), pio_report::predictions_text(&predictions));
    if let Some(path) = arguments.next() {
        pio_report::html(
            &tables,
            events.iter().cloned(),
            &pio_explain::splits_of(&tables, &events),
            &explanation,
            &predictions,
            &mut BufWriter::new(File::create(path)?),
        )?;
    }
    Ok(())
}

fn predictions() -> Vec<Prediction> {
    let prediction = |strategy: &str, parts: [f64; 3], measured_s| Prediction {
        machine: "qsnet-64".into(),
        strategy: strategy.into(),
        io_time_s: parts.iter().sum(),
        bandwidth_bytes_per_s: f64::from(200 << 20) / parts.iter().sum::<f64>(),
        breakdown: ["network", "disk", "open and close"].map(String::from).into_iter().zip(parts).collect(),
        measured_s,
        modelled_s: parts.iter().sum(),
        interval: None,
        as_it_is: None,
        bytes_between_nodes: None,
        crowd: None,
        of_any_strategy: false,
        beside: None,
    };
    vec![
        prediction("independent", [0.4, 9.1, 0.3], None),
        prediction("two-phase", [0.9, 1.7, 0.3], Some(2.81)),
        prediction("ecio", [0.5, 1.6, 0.3], Some(2.31)),
    ]
}
