//! `pioscope serve`: servers that are killed and started again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pio_store::client::{Mode, Store, Striping};

/// Servers in a process, killed when the test is over.
struct Servers(Child);

impl Servers {
    fn start(folder: &Path, arguments: &[&str]) -> Servers {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pioscope"))
            .arg("serve")
            .arg("--dir")
            .arg(folder)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("the store is ready")));
        Servers(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn killed_servers_come_back_with_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--servers", "2", "--strip", "1 KiB"];
    let mut servers = Servers::start(folder.path(), &arguments);
    let store = Store::connect(&folder.path().join("store.toml")).unwrap();
    let file = store.open("f", Mode { create: true, exclusive: true }, Striping::default()).unwrap();
    let data: Vec<u8> = (0..500_000_u32).map(|at| (at * 7 / 3) as u8).collect();
    file.write_at(1, &data).unwrap();
    servers.kill();
    servers = Servers::start(folder.path(), &arguments);
    file.sync().unwrap();
    servers.kill();
    let _servers = Servers::start(folder.path(), &arguments);
    let mut out = vec![0; data.len()];
    assert_eq!(file.read_at(1, &mut out).unwrap(), data.len() as u64);
    assert!(out == data);
    assert!(store.check("f").unwrap().iter().all(|checked| checked.damaged == 0));
}

#[test]
fn a_server_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pioscope"))
        .args(["serve", "--servers", "2", "--server-index", "2", "--dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "pioscope: there is no server 2: expected less than 2\n");
}
