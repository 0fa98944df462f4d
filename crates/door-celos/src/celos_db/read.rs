//! Reading the database: everything that can be understood, and a report of everything else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kelos_model::WorkflowId;
use kelos_model::time::{format_full, parse_instant};
use serde_json::Value;

use super::{
    CelosDbError, Index, PAUSED, Places, REGISTER, RERUN, Record, Registers, STATE, SlotRecord, Status, Trouble,
    WorkflowRecords,
};

/// Longest file of a slot or mark, in bytes: Celos writes a tenth of a kilobyte.
const LONGEST_RECORD: u64 = 64 << 10;

/// Longest register, in bytes.
const LONGEST_REGISTER: u64 = 16 << 20;

/// Names of files that Kelos itself writes, if it is configured to keep them in the same folder.
const OURS: [&str; 7] =
    ["runs", "kelos.db", "kelos.db-wal", "kelos.db-shm", "kelos.db.lock", "server.json", ".gitignore"];

/// A database of which only the names have been read so far.
#[derive(Debug)]
pub struct Database {
    root: PathBuf,
    index: Index,
    troubles: Vec<Trouble>,
}

impl Database {
    /// Opens a database and lists the workflows in it.
    ///
    /// # Errors
    /// When the folder can't be read, or nothing in it looks like a database.
    pub fn open(root: &Path) -> Result<Database, CelosDbError> {
        let mut database = Database { root: root.to_owned(), index: Index::new(), troubles: Vec::new() };
        let entries = sorted(root).map_err(|cause| CelosDbError::io("read", root, cause))?;
        let mut looks_like_one = false;
        for (entry, kind) in entries {
            let name = entry.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
            match name.as_str() {
                STATE => database.index_folders(&entry, |places, path| places.states.push(path)),
                RERUN => database.index_folders(&entry, |places, path| places.marks = Some(path)),
                PAUSED => database.index_pauses(&entry),
                REGISTER => {}
                name if OURS.contains(&name) => continue,
                _ if has_days(&entry, kind) => database.index_old(entry),
                _ => {
                    database.trouble(&entry, "Celos keeps nothing under this name: left alone");
                    continue;
                }
            }
            looks_like_one = true;
        }
        if !looks_like_one {
            return Err(CelosDbError::NoDatabase { path: root.to_owned() });
        }
        Ok(database)
    }

    /// The names of the workflows in it.
    pub fn workflows(&self) -> impl Iterator<Item = &WorkflowId> {
        self.index.keys()
    }

    /// The faults found so far.
    #[must_use]
    pub fn take_troubles(&mut self) -> Vec<Trouble> {
        std::mem::take(&mut self.troubles)
    }

    /// Reads all records of a workflow.
    pub fn workflow(&mut self, id: &WorkflowId) -> WorkflowRecords {
        let places = self.index.get(id).cloned().unwrap_or_default();
        let mut kept = WorkflowRecords { paused: places.paused, ..WorkflowRecords::default() };
        for folder in &places.states {
            for (time, path) in self.times(folder) {
                if kept.slots.contains_key(&time) {
                    self.trouble(&path, "the same slot has a newer file below state: this one was left out");
                    continue;
                }
                let found = self.slot(&path);
                kept.slots.insert(time, found);
            }
        }
        for (time, path) in places.marks.iter().flat_map(|folder| self.times(folder)).collect::<Vec<_>>() {
            match read_mark(&path) {
                Ok(at) => {
                    kept.marks.insert(time, at);
                }
                Err(why) => self.trouble(&path, &format!("{why}: this mark for rerun was left out")),
            }
        }
        kept
    }

    /// Reads the registers.
    pub fn registers(&mut self) -> Registers {
        let mut registers = BTreeMap::new();
        let root = self.root.join(REGISTER);
        if kind_of(&root).is_ok_and(|kind| kind != Kind::Folder) {
            return registers;
        }
        for (bucket, kind) in self.list(&root) {
            // A bucket with an empty name has its files directly here.
            if kind == Kind::File {
                self.register("", &bucket, &mut registers);
                continue;
            }
            let Some(name) = self.name(&bucket) else { continue };
            for (file, _) in self.list(&bucket) {
                self.register(&name, &file, &mut registers);
            }
        }
        registers
    }

    fn register(&mut self, bucket: &str, path: &Path, registers: &mut Registers) {
        let Some(key) = self.name(path) else { return };
        match read(path, LONGEST_REGISTER).and_then(|text| json(&text)) {
            Ok(value) => {
                registers.insert((bucket.to_owned(), key), value);
            }
            Err(why) => self.trouble(path, &format!("{why}: this register was left out")),
        }
    }

    fn slot(&mut self, path: &Path) -> SlotRecord {
        match read_slot(path) {
            Ok((record, None)) => SlotRecord::Record(record),
            Ok((record, Some(missing))) => {
                self.trouble(path, &missing);
                SlotRecord::Record(record)
            }
            Err(why) => {
                self.trouble(path, &format!("{why}: nobody can tell where this slot stands"));
                SlotRecord::Unreadable
            }
        }
    }

    fn index_folders(&mut self, folder: &Path, put: impl Fn(&mut Places, PathBuf)) {
        for (path, kind) in self.list(folder) {
            if kind != Kind::Folder {
                self.trouble(&path, "expected a folder named like a workflow: left alone");
            } else if let Some(id) = self.id(&path) {
                put(self.index.entry(id).or_default(), path);
            }
        }
    }

    fn index_pauses(&mut self, folder: &Path) {
        for (path, _) in self.list(folder) {
            if let Some(id) = self.id(&path) {
                self.index.entry(id).or_default().paused = true;
            }
        }
    }

    /// The folder of a workflow in databases from before September 2015.
    fn index_old(&mut self, path: PathBuf) {
        if let Some(id) = self.id(&path) {
            self.index.entry(id).or_default().states.push(path);
        }
    }

    fn id(&mut self, path: &Path) -> Option<WorkflowId> {
        let name = self.name(path)?;
        match WorkflowId::new(&name) {
            Ok(id) => Some(id),
            Err(error) => {
                self.trouble(path, &format!("{error}: left alone"));
                None
            }
        }
    }

    fn name(&mut self, path: &Path) -> Option<String> {
        let name = path.file_name().and_then(OsStr::to_str).map(str::to_owned);
        if name.is_none() {
            self.trouble(path, "its name is no UTF-8: left alone");
        }
        name
    }

    /// The files in a workflow's folder of days, by the time in their path.
    fn times(&mut self, folder: &Path) -> Vec<(Timestamp, PathBuf)> {
        let mut times = Vec::new();
        for (day, kind) in self.list(folder) {
            if kind != Kind::Folder {
                self.trouble(&day, "expected a folder of a day, such as 2015-09-13: left alone");
                continue;
            }
            for (file, kind) in self.list(&day) {
                match time_of(&day, &file) {
                    Some(time) if kind == Kind::File => times.push((time, file)),
                    _ => self.trouble(&file, "expected a file named like a time, such as 13:40:00.000Z: left alone"),
                }
            }
        }
        times
    }

    fn list(&mut self, folder: &Path) -> Vec<(PathBuf, Kind)> {
        sorted(folder).unwrap_or_else(|error| {
            self.trouble(folder, &format!("it can't be read ({error}): what is in it was left out"));
            Vec::new()
        })
    }

    fn trouble(&mut self, path: &Path, why: &str) {
        let path = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        self.troubles.push(Trouble { path, why: why.to_owned() });
    }
}

/// The kind of an entry, at the end of all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Other,
}

impl Kind {
    fn at(path: &Path) -> Kind {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Kind::Folder,
            Ok(meta) if meta.is_file() => Kind::File,
            _ => Kind::Other,
        }
    }
}

/// The kind of an entry; an error if its file system does not answer in time.
fn kind_of(path: &Path) -> std::io::Result<Kind> {
    let path = path.to_owned();
    kelos_sandbox::answered(move || Ok(Kind::at(&path)))
}

/// The entries of a folder, in the order of their names; an error also where its file system does not answer in time.
fn sorted(folder: &Path) -> std::io::Result<Vec<(PathBuf, Kind)>> {
    let folder = folder.to_owned();
    kelos_sandbox::answered(move || {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let kind = Kind::at(&path);
            entries.push((path, kind));
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    })
}

/// Whether a folder holds folders of days, and so is a workflow's.
fn has_days(path: &Path, kind: Kind) -> bool {
    let is_day = |(path, kind): &(PathBuf, Kind)| *kind == Kind::Folder && day_of(path).is_some();
    kind == Kind::Folder && sorted(path).is_ok_and(|entries| entries.iter().any(is_day))
}

fn day_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let at = parse_instant(&format!("{name}T00:00:00.000Z")).ok()?;
    format_full(at).starts_with(&format!("{name}T")).then_some(name)
}

fn time_of(day: &Path, file: &Path) -> Option<Timestamp> {
    let text = format!("{}T{}", day_of(day)?, file.file_name()?.to_str()?);
    let at = parse_instant(&text).ok()?;
    // Only in the exact form that Celos writes: another form would be a second file for the same time.
    (format_full(at) == text).then_some(at)
}

fn read(path: &Path, longest: u64) -> Result<Vec<u8>, String> {
    kelos_sandbox::read_file(path, longest).map_err(|why| format!("it {why}"))
}

fn json(text: &[u8]) -> Result<Value, String> {
    if text.is_empty() {
        return Err("it is empty, expected JSON".to_owned());
    }
    kelos_model::json::read(text).map_err(|error| format!("it is no JSON ({error})"))
}

/// The record in a file, and a description of what is missing in it.
fn read_slot(path: &Path) -> Result<(Record, Option<String>), String> {
    let value = json(&read(path, LONGEST_RECORD)?)?;
    let status = match value.get("status") {
        Some(Value::String(name)) => Status::parse(name).ok_or_else(|| format!("its status \"{name}\" is unknown"))?,
        Some(other) => return Err(format!("its status is {other}, expected one such as \"SUCCESS\"")),
        None => return Err("it has no status".to_owned()),
    };
    let missing: Vec<&str> =
        ["externalID", "retryCount"].into_iter().filter(|name| value.get(name).is_none()).collect();
    // Wrong types are converted as in Celos.
    let external_id = value["externalID"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    let retry_count = value["retryCount"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let missing = (!missing.is_empty()).then(|| format!("it has no {}: taken as none", missing.join(" and no ")));
    Ok((Record { status, external_id, retry_count }, missing))
}

fn read_mark(path: &Path) -> Result<Timestamp, String> {
    let value = json(&read(path, LONGEST_RECORD)?)?;
    let text = value["rerunTime"].as_str().ok_or("it has no rerunTime")?;
    parse_instant(text).map_err(|error| error.to_string())
}
