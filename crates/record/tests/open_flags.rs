//! How a file was opened stands with its open: what helps against slow writes depends on it.

use std::path::Path;
use std::process::Command;

use pio_record::{Options, run};
use pio_trace::{Call, Flags, Trace};

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
int main(void) {
    static const int flags[] = {0, O_SYNC, O_DSYNC, O_APPEND, O_APPEND | O_SYNC, O_DIRECT};
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
        close(open("data", O_CREAT | O_WRONLY | flags[i], 0644));
    return 0;
}
"#;

#[test]
fn opens_say_whether_writes_are_synchronous_direct_or_at_the_end() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let (source, program) = (folder.path().join("opens.c"), folder.path().join("opens"));
    std::fs::write(&source, PROGRAM).expect("the source is written");
    let compiled = Command::new("cc").arg(&source).arg("-o").arg(&program).status().expect("cc starts");
    assert!(compiled.success());
    let opened = flags_of_opens(folder.path(), &program);
    let (sync, append, direct) = (Flags::SYNC, Flags::APPEND, Flags::DIRECT);
    assert_eq!(opened, [Flags::NONE, sync, sync, append, append | sync, direct]);
}

fn flags_of_opens(folder: &Path, program: &Path) -> Vec<Flags> {
    let command = ["env".into(), "-C".into(), folder.into(), program.into()].to_vec();
    let options = Options { command, output: folder.join("job.pio"), ..Options::default() };
    assert!(run(&options).expect("the job is recorded").status.success());
    let trace = Trace::open(&options.output).expect("the trace opens");
    let events = (0..trace.blocks().len()).flat_map(|block| trace.block(block).expect("a whole block"));
    let data = folder.join("data").display().to_string();
    let is_data =
        |event: &pio_trace::Event| trace.tables().file_of_event(event).is_some_and(|file| file.path == data);
    events.filter(|event| event.call == Call::Open && is_data(event)).map(|event| event.flags).collect()
}
