//! CPU time within calls of MPI, which a program reports as the MPI recorder does.

use std::path::Path;

use crate::common::{compile, folder, record_in};
use pio_trace::{Call, Event};

/// What the program computes at a time, and less than it sleeps.
const COMPUTED_NS: u64 = 20_000_000;
const SLEPT_NS: u64 = 50_000_000;

#[test]
fn computing_within_calls_is_told_from_sleeping() {
    let folder = folder();
    let headers = format!("-I{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("c").display());
    let program = compile("cc", "used", folder.path(), &[&headers, "-ldl"]);
    let command = vec![program.into(), folder.path().join("data").into()];
    let job = record_in(folder, command, |options| options.settings.exact_times = true);
    assert!(job.outcome.status.success(), "{:?}", job.outcome);
    let event = |call| -> &Event { job.events.iter().find(|event| event.call == call).expect("the call") };
    // Computing takes its CPU time however loaded the machine is; what is beside it is the recorder's own, and far less.
    let check = |call, computed_ns: u64, slept_ns: u64| {
        let event = event(call);
        let used_ns = event.used_ns.expect("known of MPI");
        assert!(used_ns >= computed_ns && used_ns < computed_ns + COMPUTED_NS / 2, "{event:?}");
        assert!(event.elapsed_ns >= used_ns + slept_ns, "{event:?}");
    };
    check(Call::MpiSend, COMPUTED_NS, 0);
    check(Call::MpiRecv, 0, SLEPT_NS);
    check(Call::MpiWait, COMPUTED_NS, SLEPT_NS);
    check(Call::MpiBarrier, COMPUTED_NS, SLEPT_NS);
    check(Call::MpiFileSync, 2 * COMPUTED_NS, 2 * SLEPT_NS);
    check(Call::MpiFileGetSize, 0, 0);

    let think_ns = |call| event(call).think_ns;
    assert_eq!((think_ns(Call::MpiBarrier), think_ns(Call::Pwrite)), (0, 0), "below a call of MPI-IO");
    for call in [Call::MpiRecv, Call::MpiWait, Call::MpiFileSync, Call::MpiFileGetSize] {
        assert!(think_ns(call) < COMPUTED_NS / 2, "{:?}", event(call));
    }
    let last = event(Call::MpiBcast);
    assert!(last.think_ns >= COMPUTED_NS && last.think_ns < COMPUTED_NS * 3 / 2, "{last:?}");
    assert!(
        job.events.iter().all(|event| event.layer() != pio_trace::Layer::Posix || event.used_ns.is_none())
    );
}
