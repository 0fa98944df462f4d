//! The command in tests: run to its end, or as a server that is waited for.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod cluster;
pub(crate) mod link;
pub(crate) mod networks;
pub(crate) mod nodes;
pub(crate) mod oozie;
pub(crate) mod stores;
pub(crate) mod webhook;
pub(crate) mod writes;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take; only a broken program needs it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The command, without what the environment may say.
pub(crate) fn kelos(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args);
    plain(command)
}

/// The command in a network namespace.
pub(crate) fn kelos_within(space: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", space.display())).arg(program());
    plain(command)
}

/// The program of this build, or the one that a test which measures is given.
fn program() -> PathBuf {
    let given = std::env::var_os("KELOS_TEST_PROGRAM").map(PathBuf::from);
    given.unwrap_or_else(|| assert_cmd::cargo::cargo_bin!("kelos").to_path_buf())
}

fn plain(mut command: Command) -> Command {
    command.stdin(Stdio::null());
    for name in ["KELOS_SERVER", "KELOS_STORE", "KELOS_LOG", "LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env("USER", "ann");
    command
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Said {
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self.err
    }
}

/// Runs a command in a folder.
pub(crate) fn run_in(dir: &Path, args: &[&str]) -> Said {
    Said::of(kelos(args).current_dir(dir).output().expect("kelos"))
}

/// Runs a command.
pub(crate) fn run(args: &[&str]) -> Said {
    Said::of(kelos(args).output().expect("kelos"))
}

/// Looks until there is something to see, for so long.
#[track_caller]
pub(crate) fn within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + patience;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < until, "still not: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks until there is something to see.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look)
}

/// Copies a folder.
#[track_caller]
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").args([from, to]).status().expect("cp");
    assert!(status.success());
}

/// A folder of a sample of this repository.
pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// A folder of scripts.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder { dir: tempfile::tempdir().expect("a folder") };
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn text(&self) -> &str {
        self.path().to_str().expect("text")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        run_in(self.path(), args)
    }

    /// Runs a command that prints JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let out = self.run(args).ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// The states of a workflow's slots, newest first.
    #[track_caller]
    pub(crate) fn states(&self, workflow: &str) -> Vec<String> {
        let slots = self.json(&["slots", workflow, "--all", "--json"]);
        let items = slots["items"].as_array().expect("items");
        items.iter().map(|slot| slot["state"].as_str().expect("a state").to_owned()).collect()
    }
}

/// A server that runs; killed when the test ends.
pub(crate) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) said: String,
}

impl Server {
    /// Starts one and waits until it has said this.
    #[track_caller]
    pub(crate) fn start(dir: &Path, args: &[&str], until: &str) -> Server {
        Server::run(kelos(args).current_dir(dir), until)
    }

    /// The same, of a command that is given more than arguments.
    #[track_caller]
    pub(crate) fn run(command: &mut Command, until: &str) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("kelos");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let mut server = Server { child, out, said: String::new() };
        server.hear(until);
        server
    }

    /// Waits until it has said this, too.
    #[track_caller]
    pub(crate) fn hear(&mut self, until: &str) {
        while !self.said.contains(until) {
            let before = self.said.len();
            self.out.read_line(&mut self.said).expect("a line");
            assert!(self.said.len() > before, "it ended: {}", self.said);
        }
    }

    pub(crate) fn up(folder: &Folder) -> Server {
        Server::start(folder.path(), &["up"], "Stop with Ctrl-C")
    }

    /// The address that it said.
    pub(crate) fn address(&self) -> &str {
        let at = self.said.find("http").expect("an address");
        let rest = &self.said[at..];
        rest[..rest.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(rest.len())].trim()
    }

    /// The end of a machine, as far as the server can tell.
    pub(crate) fn crash(mut self) {
        self.die();
    }

    /// The same, of a server that stands in something that goes on.
    pub(crate) fn die(&mut self) {
        self.child.kill().expect("a kill");
        self.child.wait().expect("its end");
    }

    /// Sends it a signal.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill");
        assert!(status.success());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its status")
    }

    /// Asks it to end.
    #[track_caller]
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        eventually("ended", || self.child.try_wait().expect("its status"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that goes on, whose output and errors are heard in one stream.
pub(crate) struct Follower {
    child: Child,
    heard: BufReader<std::io::PipeReader>,
    said: String,
}

impl Follower {
    #[track_caller]
    pub(crate) fn start(folder: &Folder, args: &[&str]) -> Follower {
        let (heard, said) = std::io::pipe().expect("a pipe");
        let mut command = kelos(args);
        command.current_dir(folder.path()).stdout(said.try_clone().expect("its end")).stderr(said);
        // The command keeps its ends of the pipe, so it goes before anything is read.
        let child = command.spawn().expect("kelos");
        drop(command);
        Follower { child, heard: BufReader::new(heard), said: String::new() }
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn hear(&mut self, until: &str) {
        while !self.said.contains(until) {
            let read = self.heard.read_line(&mut self.said).expect("a line");
            assert!(read > 0, "it ended: {}", self.said);
        }
    }

    /// Presses Ctrl-C.
    #[track_caller]
    pub(crate) fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    }

    /// Its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
