fn main() {
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let shim = std::env::var_os("SHIM").map(Into::into);
    let o = pio_record::Options { command: args, output: "/tmp/dump.pio".into(), mpi_shim: shim, ..Default::default() };
    let r = pio_record::run(&o);
    println!("{r:?}");
    let t = pio_trace::Trace::open("/tmp/dump.pio".as_ref()).unwrap();
    for p in &t.tables().processes { println!("{p:?}"); }
    for p in &t.tables().handles { println!("{p:?} {}", t.tables().files[p.file.index()].path); }
    for p in &t.tables().views { println!("{p:?}"); }
    for e in t.events() { let e = e.unwrap(); println!("{} {} {:?} {} {:?} {:?} size={} res={} op={} think={} el={} mem={:?} fl={:?}", e.start_ns, e.process.0, e.thread, e.call.name(), e.handle.map(|h| h.0), e.target, e.size, e.result, e.operation, e.think_ns, e.elapsed_ns, e.memory, e.flags); }
}
