//! Collective calls in words: who waits for whom.

use pio_explain::Explanation;
use pio_trace::ProcessId;

use crate::units;

/// What is known of the rank that comes last most: how often, how long the others wait for it, and what made it late.
pub(crate) fn last(
    found: &Explanation,
    process: ProcessId,
    [calls, of]: [u64; 2],
    waited_ns: u64,
    [think_ns, io_ns]: [u64; 2],
) -> String {
    let each = |time_ns: u64| units::time_ns(time_ns / calls.max(1));
    let mut text = format!(
        "Rank {} came last in {} of {}, and the others waited {} for it, all together.",
        crate::findings::process(found, process),
        units::count(calls),
        units::things(of, "collective call", "collective calls"),
        units::time_ns(waited_ns),
    );
    if think_ns > 0 || io_ns > 0 {
        text.push_str(&format!(
            " Before each it had computed for {} and been in other I/O for {}, on average.",
            each(think_ns),
            each(io_ns)
        ));
    }
    text
}
