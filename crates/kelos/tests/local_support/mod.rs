//! What the tests of local runs share.
#![allow(dead_code, unreachable_pub)] // Each test program uses a part of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kelos_executors::local::{Exit, Launcher, Limits, Outcome, RunRef, RunSpec};
use tempfile::TempDir;

/// The program that these tests use as shim and as server.
pub const SHIM: &str = env!("CARGO_BIN_EXE_kelos-local-test-shim");

/// How long anything may take on a busy machine before a test gives up.
const DEADLINE: Duration = Duration::from_secs(60);

/// A root for run folders, a folder for the files of the commands, and a launcher.
pub struct Fixture {
    pub launcher: Launcher,
    temp: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("work")).unwrap();
        let launcher = launcher(&temp.path().join("runs"));
        Self { launcher, temp }
    }

    pub fn root(&self) -> PathBuf {
        self.temp.path().join("runs")
    }

    /// A file of the commands: they are started in this folder.
    pub fn work(&self, name: &str) -> PathBuf {
        self.temp.path().join("work").join(name)
    }

    /// A run of a shell script.
    pub fn script(&self, script: &str) -> RunSpec {
        self.command(["sh", "-c", script])
    }

    pub fn command<const N: usize>(&self, argv: [&str; N]) -> RunSpec {
        let mut spec = RunSpec::new(RunRef::new("flow", "key", 1), "flow@key#1", argv);
        spec.cwd = Some(self.temp.path().join("work"));
        spec
    }

    pub async fn run(&self, spec: &RunSpec) -> Exit {
        self.launcher.start(spec).await.unwrap();
        self.launcher.wait(&spec.run).await.unwrap()
    }

    pub fn log(&self, run: &RunRef) -> String {
        let chunk = kelos_executors::local::read_log(&self.launcher.dirs().path(run), 0, 1 << 20).unwrap();
        String::from_utf8(chunk.bytes).unwrap()
    }

    /// Waits until a command has written a whole line to its file, and returns it.
    pub fn line(&self, name: &str) -> String {
        let path = self.work(name);
        until(&format!("a line in {name}"), || read(&path).ends_with('\n'));
        read(&path).trim().to_owned()
    }

    /// The process id that a command has written to its file.
    pub fn pid(&self, name: &str) -> i32 {
        self.line(name).parse().unwrap()
    }

    /// The shim of a run.
    pub fn shim_pid(&self, run: &RunRef) -> i32 {
        let claim = self.json(run, "claim");
        i32::try_from(claim["shim"]["pid"].as_i64().unwrap()).unwrap()
    }

    pub fn json(&self, run: &RunRef, name: &str) -> serde_json::Value {
        let text = read(&self.launcher.dirs().path(run).join(name));
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    }
}

pub fn launcher(root: &Path) -> Launcher {
    launcher_with(root, Limits::default())
}

pub fn launcher_with(root: &Path, limits: Limits) -> Launcher {
    Launcher::new(root, vec![SHIM.into(), "__shim".into()], limits).unwrap()
}

pub fn code(code: i32) -> Outcome {
    Outcome::Exited { code }
}

/// Waits for a condition.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Whether a process runs; one that nobody has reaped yet doesn't.
pub fn is_alive(pid: i32) -> bool {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    stat.rfind(')').is_some_and(|end| !stat[end..].starts_with(") Z"))
}

/// The parent of a process: of a shim, its fork server.
pub fn parent(pid: i32) -> i32 {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    stat[stat.rfind(')').unwrap()..].split(' ').nth(2).unwrap().parse().unwrap()
}

pub fn kill(pid: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
}

/// The content of a file, empty when there is none.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
