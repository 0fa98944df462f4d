//! Where a document is gone through: a copy of the samples, the command on the path, servers that go on until the end.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use crate::marks::Run;
use crate::transcript::{Exchange, agrees, exchanges};
use crate::{real, root};

/// How long anything may take; only what is broken needs it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(300);

/// The variables by which the program that stands for curl is called: its arguments, one a line, and the server.
pub(crate) const ARGUMENTS: &str = "KELOS_DOCUMENT_CURL";
pub(crate) const SERVER: &str = "KELOS_DOCUMENT_SERVER";

/// The variable that names a program to go through the documents with: one that was installed, say.
const PROGRAM: &str = "KELOS_DOCUMENT_PROGRAM";

/// Commands that go on until they are ended, and what each says when it is ready.
const LASTING: [(&str, Role, &str); 7] = [
    ("kelos up", Role::Server, "Stop with Ctrl-C"),
    ("kelos serve", Role::Server, "its state is in "),
    ("python3 receiver.py", Role::Receiver, " at http"),
    ("kelos worker --server", Role::Worker, "for runs"),
    ("kelos worker", Role::Helper, "is running"),
    ("kelos events -f", Role::Helper, ""),
    ("kelos shadow", Role::Helper, ""),
];

/// The part that a lasting command has in a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Role {
    /// A server of Kelos, which goes on until the end of the document.
    Server,
    /// A program to which servers post, which does so, too.
    Receiver,
    /// A worker of another machine, which does so, too.
    Worker,
    /// A command that ends with its block.
    #[default]
    Helper,
}

/// What samples write when they run.
const LEFT: [&str; 4] = [".kelos", "data", "celos.d", "input"];

pub(crate) struct Desk {
    root: TempDir,
    /// With the folder that each serves, or was started in, and its address.
    servers: Vec<(PathBuf, String, Process)>,
    /// The program that servers post to, with its address.
    receiver: Option<(String, Process)>,
    /// The workers of other machines.
    workers: Vec<Process>,
    /// The line with which the reader begins each terminal.
    prologue: String,
}

/// A command that goes on in the background; it ends with this.
struct Process {
    child: Child,
    output: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn said(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits until what it has said is enough.
    fn until(&mut self, enough: impl Fn(&str) -> bool) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let ended = self.child.try_wait().expect("its status");
            let said = self.said();
            if enough(&said) {
                return Ok(());
            }
            if let Some(status) = ended {
                return Err(format!("it ended ({status}):\n{said}"));
            }
            if Instant::now() > until {
                return Err(format!("waited in vain for what the document says:\n{said}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let root_folder = tempfile::tempdir().expect("a folder");
        let (servers, workers) = (Vec::new(), Vec::new());
        let desk = Desk { root: root_folder, servers, receiver: None, workers, prologue: String::new() };
        copy(&root().join("samples"), &desk.path("samples"));
        symlink(root().canonicalize().expect("the repository").join("fixtures"), desk.path("fixtures"))
            .expect("a link");
        fs::create_dir(desk.path("bin")).expect("a folder");
        let program =
            std::env::var_os(PROGRAM).map_or_else(|| assert_cmd::cargo::cargo_bin!("kelos").into(), PathBuf::from);
        symlink(program, desk.path("bin/kelos")).expect("a link");
        let this = std::env::current_exe().expect("this program");
        let curl = format!(
            "#!/bin/sh\n{ARGUMENTS}=$(printf '%s\\n' \"$@\")\nexport {ARGUMENTS}\nexec {} --exact --ignored --nocapture curl\n",
            this.display()
        );
        fs::write(desk.path("bin/curl"), curl).expect("a script");
        fs::set_permissions(desk.path("bin/curl"), fs::Permissions::from_mode(0o755)).expect("a mode");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file that a document shows.
    pub(crate) fn write(&self, name: &str, names: &[(String, String)], text: &[String]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        let text = self.named(self.root.path(), names, text);
        fs::write(path, text.join("\n") + "\n").expect("a file");
    }

    /// Runs a block.
    pub(crate) fn run(&mut self, run: &Run, text: &[String]) -> Result<(), String> {
        let folder = self.path(&run.folder);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut background = Vec::new();
        if run.unserved {
            self.servers.clear();
        }
        if run.served && !self.servers.iter().any(|(served, ..)| *served == folder) {
            self.start(&folder, "kelos up", &mut background)?;
        }
        let text: Vec<String> = self.named(&folder, &run.names, text).iter().map(|line| plain(line)).collect();
        if text.iter().any(|line| line.starts_with("$ ")) {
            for exchange in exchanges(&text) {
                self.exchange(&folder, &exchange, run, &mut background)?;
            }
            return Ok(());
        }
        let mut script = Vec::new();
        for command in logical(&text) {
            if command.starts_with("set -a; ") {
                self.prologue = format!("{command}\n");
                continue;
            }
            if lasting(&command).is_some() || run.patiently {
                self.script(&folder, &mut script)?;
            }
            if lasting(&command).is_some() {
                self.start(&folder, &command, &mut background)?;
            } else if run.patiently {
                self.patiently(&folder, &command)?;
            } else {
                script.push(command);
            }
        }
        self.script(&folder, &mut script)
    }

    /// The text with the replacements of names. Paths are below the copy; missing folders are created.
    fn named(&self, folder: &Path, names: &[(String, String)], text: &[String]) -> Vec<String> {
        let value = |value: &str| match value {
            "SERVER" => self.server(folder).to_owned(),
            "RECEIVER" => self.receiver.as_ref().map_or_else(String::new, |(address, _)| address.clone()),
            "POSTGRES" => real::postgres(),
            "HOUR" => utc(2, "%Y-%m-%dT%H:00Z"),
            "DAY" => utc(24, "%Y-%m-%d"),
            text if text.contains(':') => text.to_owned(),
            path => {
                let path = self.path(path);
                if !path.exists() {
                    fs::create_dir_all(&path).expect("a folder");
                }
                path.to_str().expect("text").to_owned()
            }
        };
        let named = |line: &String| {
            names.iter().fold(line.clone(), |line, (name, stands_for)| line.replace(name, &value(stands_for)))
        };
        text.iter().map(named).collect()
    }

    fn exchange(
        &mut self,
        folder: &Path,
        exchange: &Exchange,
        run: &Run,
        background: &mut Vec<Process>,
    ) -> Result<(), String> {
        let command = &exchange.command;
        if lasting(command).is_some() {
            self.start(folder, command, background)?;
            let process = background.last_mut().ok_or("a server has no transcript")?;
            return process
                .until(|said| agrees(&exchange.printed, said, run.roughly))
                .map_err(|wrong| format!("{command}: {wrong}"));
        }
        let fails = exchange.printed.first().is_some_and(|line| line.starts_with("error: "));
        let until = Instant::now() + if run.patiently { PATIENCE } else { Duration::ZERO };
        loop {
            let (ok, said) = self.shell(folder, command);
            if ok != fails && agrees(&exchange.printed, &said, run.roughly) {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(format!("{command}: expected\n{}\nfound\n{said}", exchange.printed.join("\n")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Runs what has come together of a script, as one.
    fn script(&self, folder: &Path, lines: &mut Vec<String>) -> Result<(), String> {
        let script = std::mem::take(lines).join("\n");
        match self.shell(folder, &script) {
            (true, _) => Ok(()),
            (false, said) => Err(format!("{script}\nfailed:\n{said}")),
        }
    }

    fn patiently(&self, folder: &Path, command: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.shell(folder, command) {
                (true, _) => return Ok(()),
                (false, said) if Instant::now() > until => {
                    return Err(format!("{command}\nfailed to the end:\n{said}"));
                }
                (false, _) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Runs a script to its end: whether it succeeded, and what it said.
    fn shell(&self, folder: &Path, script: &str) -> (bool, String) {
        let output = self.command(folder, &format!("exec 2>&1\n{script}")).output().expect("a shell");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts a command in the background, and waits until it is ready. Servers go on until the end of the document.
    fn start(&mut self, folder: &Path, command: &str, background: &mut Vec<Process>) -> Result<(), String> {
        let lasting_ones = self.servers.len() + self.workers.len() + usize::from(self.receiver.is_some());
        let output = self.path(&format!("output-{lasting_ones}-{}", background.len()));
        let file = fs::File::create(&output).expect("a file");
        let errors = file.try_clone().expect("a file");
        let child =
            self.command(folder, &format!("exec {command}")).stdout(file).stderr(errors).spawn().expect("a shell");
        let mut process = Process { child, output };
        let (role, ready) = lasting(command).unwrap_or_default();
        process
            .until(|said| !said.is_empty() && said.contains(ready))
            .map_err(|wrong| format!("{command}: {wrong}"))?;
        let address = || address(&process.said()).ok_or_else(|| format!("{command} said no address"));
        match role {
            Role::Server => {
                let served = command.strip_prefix("kelos up ").and_then(|rest| rest.split_whitespace().next());
                let served = served.filter(|word| !word.starts_with('-'));
                let place = served.map_or(folder.to_owned(), |name| folder.join(name));
                self.servers.push((place, address()?, process));
            }
            Role::Receiver => self.receiver = Some((address()?, process)),
            Role::Worker => self.workers.push(process),
            Role::Helper => background.push(process),
        }
        Ok(())
    }

    /// The server of a folder, or else the newest.
    fn server(&self, folder: &Path) -> &str {
        let of_folder = self.servers.iter().find(|(served, ..)| served == folder);
        of_folder.or(self.servers.last()).map_or("", |(_, address, _)| address)
    }

    /// The address of the newest server.
    pub(crate) fn address(&self) -> &str {
        self.server(Path::new(""))
    }

    fn command(&self, folder: &Path, script: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("/bin/sh");
        command.args(["-e", "-c", &format!("{}{script}", self.prologue)]).current_dir(folder).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KELOS_") || name.starts_with("STOLOS_"))
        {
            command.env_remove(name);
        }
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        // The machine may be busy.
        command.env("STOLOS_TIMEOUT", "60");
        command.env("USER", "ann").env("LC_ALL", "C.UTF-8").env(SERVER, self.server(folder));
        // The variable of a job, whose lines some documents show.
        command.env("KELOS_OUTPUTS", self.path("outputs.json"));
        command
    }
}

/// Whether the program understands the commands of a block that is not run. Those with gaps for the reader are left out.
pub(crate) fn understood(text: &[String]) -> Result<(), String> {
    let text: Vec<String> = text.iter().map(|line| plain(line.strip_prefix("$ ").unwrap_or(line))).collect();
    let desk = Desk::new();
    for command in logical(&text).iter().filter(|line| line.starts_with("kelos ") && !line.contains(['[', '…'])) {
        let command = command.split(" # ").next().unwrap_or(command).trim_end();
        let (ok, said) = desk.shell(desk.root.path(), &format!("{command} --help"));
        if !ok {
            return Err(format!("{command}: {said}"));
        }
    }
    Ok(())
}

/// The lines of a script, those that a backslash takes together as one, and loops whole.
fn logical(text: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (mut goes_on, mut depth) = (false, 0);
    for line in text.iter().filter(|line| !line.trim().is_empty()) {
        match lines.last_mut() {
            Some(last) if goes_on || depth > 0 => *last += &format!("\n{line}"),
            _ => lines.push(line.clone()),
        }
        // The word may also stand in a comment or be an argument.
        let begins = usize::from(line.trim_start().starts_with("for "));
        let ends = line.split([' ', ';']).filter(|word| *word == "done").count();
        depth = (depth + begins).saturating_sub(ends);
        goes_on = line.ends_with('\\');
    }
    lines
}

/// A command as it is called here: the program is there already, and ports may be taken.
fn plain(line: &str) -> String {
    let line = match (line.find("cargo run "), line.find(" -- ")) {
        (Some(from), Some(to)) if from < to && line.contains("-p kelos-cli ") => {
            format!("{}kelos {}", &line[..from], &line[to + 4..])
        }
        _ => line.to_owned(),
    };
    match line.split_once("--port ") {
        Some((before, after)) => format!("{before}--port 0{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => line,
    }
}

/// The part of a command that goes on until it is ended, and what it says when it is ready; none of one that ends by itself.
fn lasting(command: &str) -> Option<(Role, &'static str)> {
    let found = LASTING.into_iter().find(|(name, ..)| {
        command.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n']))
    });
    found.map(|(_, role, ready)| (role, ready))
}

fn address(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains(" at http"))?;
    let rest = &line[line.find(" at http")? + 4..];
    let end = rest.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('/').to_owned())
}

/// The time so many hours ago.
fn utc(hours: u64, format: &str) -> String {
    let then = SystemTime::now() - Duration::from_secs(hours * 3600);
    jiff::Timestamp::try_from(then).expect("a time").strftime(format).to_string()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (name, path) = (entry.file_name(), entry.path());
        if path.is_dir() {
            if !LEFT.iter().any(|left| name == *left) {
                copy(&path, &to.join(name));
            }
        } else {
            fs::copy(&path, to.join(name)).expect("a copy");
        }
    }
}

/// Asks the server, wherever the address points, and prints the answer.
pub(crate) fn curl(arguments: &str, server: &str) {
    let (mut method, mut body, mut url, mut stream) = (None, None, "", false);
    let mut words = arguments.lines();
    while let Some(word) = words.next() {
        match word {
            "-X" | "--request" => method = words.next(),
            "-d" | "--data" => body = words.next(),
            "-N" => stream = true,
            "--location" => {}
            address => url = address,
        }
    }
    let path = url.trim_start_matches("http://").split_once('/').map_or("", |(_, path)| path);
    let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
    let request = ureq::http::Request::builder().method(method).uri(format!("{server}/{path}"));
    let request = request.body(body.unwrap_or_default().to_owned()).expect("a request");
    let agent = ureq::Agent::config_builder().allow_non_standard_methods(true).build().new_agent();
    let answer = agent.run(request).unwrap_or_else(|error| panic!("{method} {url}: {error}"));
    let mut reader = answer.into_body().into_reader();
    let mut text = vec![0; 4096];
    let read = reader.read(&mut text).expect("an answer");
    text.truncate(read);
    if !stream {
        reader.read_to_end(&mut text).expect("an answer");
    }
    println!("{}", String::from_utf8_lossy(&text));
}
