//! The small files of a run and how they get to disk: replaced whole, or created once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{At, LocalError};
use super::fence::Fence;
use super::paths::RunRef;
use super::procs::ProcessId;
use super::run_secrets::RunSecrets;

/// The file with the command to run, without the secrets that it declares.
pub(crate) const SPEC: &str = "spec.json";
/// The file that exactly one process can create, before anything runs. Once the command runs, a
/// second line names its process.
pub(crate) const CLAIM: &str = "claim";
/// The file with the outcome.
pub(crate) const EXIT: &str = "exit.json";
/// The file that marks that the server killed a shim that would not end: the outcome is then known to be *killed*.
pub(crate) const HARD_KILLED: &str = "hard-killed";
/// The file for errors around the command; usually there is none.
pub(crate) const SHIM_ERR: &str = "shim.err";

/// The command of a run and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The run, which decides the folder.
    pub run: RunRef,
    /// The id of the run; a repeated start is recognised by it. The command sees it as
    /// `KELOS_RUN_ID`.
    pub run_id: String,
    /// The program and its arguments. No shell is involved.
    pub argv: Vec<String>,
    /// Environment values set for the command.
    pub env: BTreeMap<String, String>,
    /// Whether the command also sees the server's own environment.
    pub inherit_env: bool,
    /// The folder the command starts in; the server's own when absent.
    pub cwd: Option<PathBuf>,
    /// The timeout of the command; unlimited if absent.
    #[serde(rename = "timeout_ms", with = "millis", default)]
    pub timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL; the launcher's limit if absent.
    #[serde(rename = "grace_ms", with = "millis", default)]
    pub grace: Option<Duration>,
    /// The most bytes of output that are kept; the launcher's limit if absent. Never less than 4 KiB.
    pub log_limit_bytes: Option<u64>,
    /// The project of its workflow, by whose terms its folder is kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Notes of Kelos about the run, with which its output begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The user of the system as whom the command runs; the server's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    /// Of a run of a worker on another machine than its leader: how long it may go on without a word from the leader.
    #[serde(skip)]
    pub lease: Option<Duration>,
    /// The fence that the shim keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<Fence>,
    /// Whether the shim has to be handed secrets before the command can start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_secrets: bool,
    /// The secrets that the command is given: in memory only.
    #[serde(skip)]
    pub secrets: RunSecrets,
}

impl RunSpec {
    /// A command with the server's environment and no limits of its own.
    pub fn new<A: Into<String>>(run: RunRef, run_id: impl Into<String>, argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            run,
            run_id: run_id.into(),
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            inherit_env: true,
            cwd: None,
            timeout: None,
            grace: None,
            log_limit_bytes: None,
            project: String::new(),
            notes: Vec::new(),
            run_as: None,
            lease: None,
            fence: None,
            has_secrets: false,
            secrets: RunSecrets::default(),
        }
    }
}

/// The reason for which a run whose folder is gone has no outcome.
pub(crate) const FOLDER_GONE: &str = "the folder of the run was removed or moved while it ran";

/// The outcome of a run, with its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The start of the command, in milliseconds since 1970; absent if it never started, or that isn't known.
    pub started_at_ms: Option<i64>,
    /// When the end was written down, in milliseconds since 1970.
    pub ended_at_ms: i64,
}

impl Exit {
    /// Whether the command exited with status 0.
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Exited { code: 0 }
    }

    /// The end of a run that had started, and whose folder was removed or moved since. Its processes can't be found without it.
    pub(crate) fn without_folder() -> Self {
        let outcome = Outcome::Lost { why: FOLDER_GONE.to_owned() };
        Exit { outcome, started_at_ms: None, ended_at_ms: now_ms() }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The command ended by itself.
    Exited {
        /// Its exit status.
        code: i32,
    },
    /// A signal that Kelos did not send ended the command.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// The command took longer than it may and was ended.
    TimedOut,
    /// The run was cancelled. One that was cancelled before it started has no start time.
    Killed,
    /// The command could not be started; nothing ran.
    FailedToStart {
        /// The error.
        error: String,
    },
    /// The command did start, and its end isn't known. Nothing of it runs any more.
    Unknown {
        /// The reason for which it isn't known.
        why: String,
    },
    /// The command did start, its end isn't known, and something of it may still be running.
    Lost {
        /// The reason for which it isn't known.
        why: String,
    },
}

/// The shim of a run, and the means to find its processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) run_id: String,
    /// Unique value of [`TAG_VARIABLE`](super::procs::TAG_VARIABLE) in the environment of everything that the run starts.
    pub(crate) tag: String,
    /// The shim; absent when the run was cancelled before anything started.
    pub(crate) shim: Option<ProcessId>,
    /// The boot and the process id namespace in which the shim's id means something.
    pub(crate) host: String,
    pub(crate) claimed_at_ms: i64,
}

/// Creates a file that can be created only once, complete from its first moment. `false`: it was
/// there already. The hard link makes both true at once, where `O_EXCL` alone would show an empty
/// file for a moment.
pub(crate) fn create_once<T: Serialize>(dir: &Path, name: &str, value: &T) -> Result<bool, LocalError> {
    let target = dir.join(name);
    let temp = write_temp(dir, name, value)?;
    let linked = fs::hard_link(&temp, &target);
    let _ = fs::remove_file(&temp);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).at("create", &target),
    }
}

/// Makes a file survive a power failure, its name included: that is a change of the same inode.
pub(crate) fn sync(dir: &Path, name: &str) -> Result<(), LocalError> {
    let path = dir.join(name);
    File::open(&path).and_then(|file| file.sync_all()).at("sync", &path)
}

/// Replaces a file whole: a reader sees the old or the new one.
pub(crate) fn replace<T: Serialize>(dir: &Path, name: &str, value: &T) -> Result<(), LocalError> {
    let target = dir.join(name);
    let temp = write_temp(dir, name, value)?;
    fs::rename(&temp, &target).at("create", &target)
}

/// Reads the claim of a run, and the process of its command if there is one by now.
pub(crate) fn read_claim(dir: &Path) -> Result<Option<(Claim, Option<ProcessId>)>, LocalError> {
    let Some(bytes) = read_bytes(dir, CLAIM)? else {
        return Ok(None);
    };
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let claim = parse(dir, CLAIM, lines.next().unwrap_or_default())?;
    // Half a line, or none: the command has only just started.
    let line = lines.next().filter(|line| is_whole(line));
    let command = line.and_then(|line| match parse(dir, CLAIM, line) {
        Ok(command) => Some(command),
        Err(error) => {
            tracing::warn!("failed to {error}; the process of the command is unknown");
            None
        }
    });
    Ok(Some((claim, command)))
}

/// Adds the process of the command to the claim. No file of its own: the number of files is what
/// most of the cost of a short run depends on.
pub(crate) fn add_command(dir: &Path, command: ProcessId) -> io::Result<()> {
    let mut line = vec![b'\n'];
    line.extend(checked(serde_json::to_vec(&command)?));
    OpenOptions::new().append(true).open(dir.join(CLAIM))?.write_all(&line)
}

/// Keeps what went wrong around the command, as far as possible.
pub(crate) fn complain(dir: &Path, complaint: &str) {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(dir.join(SHIM_ERR));
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{complaint}");
    }
}

/// Reads a record; `None` when the file isn't there.
pub(crate) fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>, LocalError> {
    read_bytes(dir, name)?.map(|bytes| parse(dir, name, &bytes)).transpose()
}

fn read_bytes(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, LocalError> {
    let path = dir.join(name);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error).at("read", &path),
    }
}

fn parse<T: DeserializeOwned>(dir: &Path, name: &str, bytes: &[u8]) -> Result<T, LocalError> {
    let record = unchecked(bytes).and_then(|bytes| serde_json::from_slice(&bytes));
    record.map_err(|source| LocalError::BadRecord { path: dir.join(name), source })
}

/// The beginning of the last member of a record: the check value of everything before it.
const CHECK: &[u8] = b",\"check\":\"";
/// The length of the rest: eight digits, and the end.
const CHECKED_END: usize = 10;

/// A record with its check value, so that what changes on the disk by itself is noticed when it is read.
fn checked(mut record: Vec<u8>) -> Vec<u8> {
    if record.starts_with(b"{") && record.pop() == Some(b'}') {
        let value = crc32fast::hash(&record);
        record.extend(CHECK);
        record.extend(format!("{value:08x}\"}}").bytes());
    }
    record
}

/// Whether a line is no longer being written.
fn is_whole(line: &[u8]) -> bool {
    let check = line.windows(CHECK.len()).position(|part| part == CHECK);
    line.ends_with(b"}") || check.is_some_and(|at| line.len() >= at + CHECK.len() + CHECKED_END)
}

/// The record without its check value, which has to be right. One without any was written before there were any.
fn unchecked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, serde_json::Error> {
    let Some((rest, end)) = bytes.len().checked_sub(CHECKED_END).and_then(|at| bytes.split_at_checked(at)) else {
        return Ok(bytes.into());
    };
    let Some(record) = rest.strip_suffix(CHECK) else { return Ok(bytes.into()) };
    let expected = format!("{:08x}\"}}", crc32fast::hash(record));
    if end != expected.as_bytes() {
        return Err(serde::de::Error::custom("it does not agree with its check value: it changed by itself"));
    }
    Ok([record, b"}"].concat().into())
}

/// Writes a temporary file, readable by its owner alone.
fn write_temp<T: Serialize>(dir: &Path, name: &str, value: &T) -> Result<PathBuf, LocalError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!(".{name}.{}.{count}", std::process::id()));
    let bytes = serde_json::to_vec(value).map_err(|source| LocalError::BadRecord { path: path.clone(), source })?;
    let bytes = checked(bytes);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).at("create", &path)?;
    if let Err(error) = file.write_all(&bytes) {
        let _ = fs::remove_file(&path);
        return Err(error).at("write", &path);
    }
    Ok(path)
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Optional durations as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_as_it_was_written() {
        let exit = Exit { outcome: Outcome::Exited { code: 3 }, started_at_ms: Some(1), ended_at_ms: 2 };
        let text = serde_json::to_string(&exit).unwrap();
        assert_eq!(text, r#"{"outcome":"exited","code":3,"started_at_ms":1,"ended_at_ms":2}"#);
        assert_eq!(serde_json::from_str::<Exit>(&text).unwrap(), exit);
        assert_eq!(serde_json::to_value(Outcome::TimedOut).unwrap(), serde_json::json!({"outcome": "timed_out"}));
    }

    /// Reads what is there after each of its bits was flipped.
    fn each_flip(dir: &Path, name: &str, look: impl Fn()) {
        let written = fs::read(dir.join(name)).unwrap();
        for bit in 0..written.len() * 8 {
            let mut flipped = written.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(dir.join(name), &flipped).unwrap();
            look();
        }
        fs::write(dir.join(name), &written).unwrap();
    }

    #[test]
    fn no_bit_of_a_record_flips_unseen() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let exit =
            Exit { outcome: Outcome::Exited { code: 3 }, started_at_ms: Some(1_700_000_000_000), ended_at_ms: 2 };
        create_once(dir, EXIT, &exit).unwrap();
        each_flip(dir, EXIT, || {
            if let Ok(read) = read::<Exit>(dir, EXIT) {
                assert_eq!(read.as_ref(), Some(&exit), "{}", fs::read_to_string(dir.join(EXIT)).unwrap());
            }
        });
        let run = RunRef::new("w", "2016-01-01T12:00Z", 1);
        let mut spec = RunSpec::new(run, "w@1#2", ["sh", "-c", "exit 3"]);
        spec.timeout = Some(Duration::from_secs(5));
        replace(dir, SPEC, &spec).unwrap();
        each_flip(dir, SPEC, || {
            if let Ok(read) = read::<RunSpec>(dir, SPEC) {
                assert_eq!(read.as_ref(), Some(&spec));
            }
        });
        let shim = ProcessId::current().unwrap();
        let claim = Claim {
            run_id: "w@1#2".to_owned(),
            tag: "x".to_owned(),
            shim: Some(shim),
            host: "h".to_owned(),
            claimed_at_ms: 5,
        };
        create_once(dir, CLAIM, &claim).unwrap();
        add_command(dir, shim).unwrap();
        each_flip(dir, CLAIM, || {
            if let Ok(Some((read, command))) = read_claim(dir) {
                assert_eq!(read, claim);
                assert!(command.is_none_or(|command| command == shim), "{command:?}");
            }
        });
        assert_eq!(read_claim(dir).unwrap(), Some((claim, Some(shim))));
    }

    #[test]
    fn a_record_without_a_check_value_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"outcome":"exited","code":3,"started_at_ms":1,"ended_at_ms":2}"#;
        fs::write(dir.path().join(EXIT), text).unwrap();
        let exit = Exit { outcome: Outcome::Exited { code: 3 }, started_at_ms: Some(1), ended_at_ms: 2 };
        assert_eq!(read(dir.path(), EXIT).unwrap(), Some(exit));
    }

    #[test]
    fn a_file_is_created_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(create_once(dir.path(), "claim", &1).unwrap());
        assert!(!create_once(dir.path(), "claim", &2).unwrap());
        assert_eq!(read::<i32>(dir.path(), "claim").unwrap(), Some(1));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
    }
}
