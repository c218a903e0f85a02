//! Servers in a process of their own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use pio_store::client::Store;

/// Whether every server finds that its part of a file is as it was written.
pub(crate) fn is_sound(store: &Store, path: &str) -> bool {
    store.check(path).unwrap().iter().all(|(_, part)| part.as_ref().is_ok_and(|part| part.damaged == 0))
}

/// `pioscope serve`, killed when the test is over.
pub(crate) struct Servers {
    child: Child,
    folder: PathBuf,
    arguments: Vec<String>,
    transport: &'static str,
}

impl Servers {
    /// Starts servers in a folder, and waits until the store is ready.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Servers {
        Servers::start_through("", folder, arguments)
    }

    /// The same, with a transport of their choice.
    pub(crate) fn start_through(transport: &'static str, folder: &Path, arguments: &[&str]) -> Servers {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.into()).collect();
        let child = start(folder, &arguments, transport);
        Servers { child, folder: folder.to_owned(), arguments, transport }
    }

    /// Starts one server of a store of several; the others are to be started, too.
    pub(crate) fn start_one(folder: &Path, index: u32, servers: u32, arguments: &[&str]) -> Servers {
        let numbers = [index, servers].map(|number| number.to_string());
        let one = ["--server-index", &numbers[0], "--servers", &numbers[1]];
        Servers::start(folder, &[&one, arguments].concat())
    }

    /// Starts them in a namespace where `folder` is a file system in memory of so many bytes; `None` if this machine does
    /// not let an ordinary user do that.
    pub(crate) fn start_on_small_disk(folder: &Path, bytes: u64) -> Option<Servers> {
        let mount = format!("mount -t tmpfs -o size={bytes} none '{}'", folder.display());
        let own = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
            command
        };
        if !own(&mount).output().is_ok_and(|output| output.status.success()) {
            return None;
        }
        let serve = format!(
            "{mount} && exec '{}' serve --dir '{}/data' --store-file '{}/../store.toml'",
            env!("CARGO_BIN_EXE_pioscope"),
            folder.display(),
            folder.display()
        );
        let child = ready(&mut own(&serve));
        Some(Servers { child, folder: folder.to_owned(), arguments: Vec::new(), transport: "" })
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts them again after they were killed.
    pub(crate) fn start_again(&mut self) {
        self.child = start(&self.folder, &self.arguments, self.transport);
    }

    /// Kills them, and starts them again where they were.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Sends a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
        // On a busy machine, threads go on until the kernel comes to them.
        while name == "STOP" && !self.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        // The state follows the name, which may hold anything (proc(5)).
        let state = |stat: String| stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('T'));
        threads
            .filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).ok())
            .all(|stat| state(stat) == Some(true))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address of this machine for the servers of a folder alone: while they are killed, nobody else takes their ports.
pub(crate) fn host_of(folder: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    folder.hash(&mut hasher);
    let [one, two, three, ..] = hasher.finish().to_le_bytes();
    format!("127.{}.{two}.{three}", one | 1)
}

fn start(folder: &Path, arguments: &[String], transport: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pioscope"));
    command.env("PIOSCOPE_TRANSPORT", transport).arg("serve").arg("--dir").arg(folder).args(arguments);
    // UCX only knows addresses that interfaces have.
    if transport != "ucx" {
        command.arg("--listen").arg(host_of(folder));
    }
    match arguments.iter().any(|argument| argument == "--server-index") {
        // The store is ready with the last of them.
        true => says(&mut command, "pioscope: server "),
        false => ready(&mut command),
    }
}

fn ready(command: &mut Command) -> Child {
    says(command, "the store is ready")
}

/// Starts servers, and waits until they have said this.
fn says(command: &mut Command, text: &str) -> Child {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    let ready = said.map(Result::unwrap).any(|line| {
        seen.push(line);
        seen.last().is_some_and(|line| line.contains(text))
    });
    assert!(ready, "{seen:?}");
    child
}
