//! Writing a state database of Celos, so that Celos can continue where Kelos stopped.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use kelos_model::register::ACCESS_BUCKET;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Slot, SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, Register, RegisterKeys, SlotFilter, SlotRow, StoreError};
use serde::Serialize;

use crate::celos_db::{
    CelosDbError, Database, FileStatus, Record, Status, Tree, TreeFile, Trouble, WINDOW, is_safe_name,
};
use crate::import::EXECUTOR;

/// How many slots are read at once.
const PAGE: usize = 5_000;

/// How many of the files that differ are named.
const NAMED: usize = 5;

/// An error of an export, before which nothing was exported. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The folder of Celos can't be used.
    #[error(transparent)]
    Celos(#[from] CelosDbError),
    /// Our own database can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder contains something else.
    #[error("export to {folder}: it is not empty and no state database of Celos; name another folder, or use --force")]
    Foreign {
        /// The folder.
        folder: String,
    },
    /// The database in the folder differs.
    #[error("export to {folder}: {count} of its files say something else, such as {}; use --force to replace them", named.join(", "))]
    Differs {
        /// The folder.
        folder: String,
        /// How many files differ.
        count: u64,
        /// Some of them.
        named: Vec<String>,
    },
}

/// Options of an export.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The moment of the export: of the marks for rerun that it makes.
    pub now: Timestamp,
    /// Whether to write into a folder with other content, and to replace files that differ.
    pub force: bool,
    /// Whether to report only, and write nothing.
    pub dry_run: bool,
}

/// The result of an export.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportReport {
    /// How many slots of each workflow were written, or existed already.
    pub workflows: BTreeMap<String, u32>,
    /// How many registers were written, or existed already.
    pub registers: u32,
    /// How many slots are marked for rerun because Celos would ignore them: for their age, or for their workflow's start.
    pub marked: u32,
    /// How many files were written.
    pub written: u64,
    /// How many files existed with the same content.
    pub same: u64,
    /// How many pauses were ended.
    pub unpaused: u32,
    /// Data that could not be exported, and notes.
    pub troubles: Vec<Trouble>,
}

/// Exports all state with which Celos can continue.
///
/// # Errors
/// If either database can't be read or written, or the folder has other content. Everything is checked before anything
/// is written.
pub fn export(reader: &dyn Queries, root: &Path, options: &ExportOptions) -> Result<ExportReport, ExportError> {
    let export = Export { reader, tree: Tree::at(root), root, options };
    export.check_folder()?;
    let mut looked = Look::default();
    export.each(&mut |file| export.look(file, &mut looked))?;
    if looked.differ > 0 && !options.force {
        let folder = root.display().to_string();
        return Err(ExportError::Differs { folder, count: looked.differ, named: looked.named });
    }
    let mut done =
        ExportReport { same: looked.same, written: looked.missing + looked.differ, ..ExportReport::default() };
    if options.dry_run {
        export.tell(&mut done)?;
        return Ok(done);
    }
    export.each(&mut |file| match export.tree.standing(&file)? {
        FileStatus::Same => Ok(()),
        _ => Ok(export.tree.write(&file)?),
    })?;
    done.unpaused = export.end_pauses()?;
    export.tree.sync()?;
    export.tell(&mut done)?;
    Ok(done)
}

#[derive(Default)]
struct Look {
    missing: u64,
    same: u64,
    differ: u64,
    named: Vec<String>,
}

struct Export<'a> {
    reader: &'a dyn Queries,
    tree: Tree,
    root: &'a Path,
    options: &'a ExportOptions,
}

type SlotVisitor<'a> = dyn FnMut(TreeFile) -> Result<(), ExportError> + 'a;

impl Export<'_> {
    fn check_folder(&self) -> Result<(), ExportError> {
        if self.options.force || self.tree.is_empty()? || Database::open(self.root).is_ok() {
            return Ok(());
        }
        Err(ExportError::Foreign { folder: self.root.display().to_string() })
    }

    fn look(&self, file: TreeFile, looked: &mut Look) -> Result<(), ExportError> {
        match self.tree.standing(&file)? {
            FileStatus::Missing => looked.missing += 1,
            FileStatus::Same => looked.same += 1,
            // A mark expires some time after it was made; any later mark is as good.
            FileStatus::Differs if file.path.starts_with("rerun") => looked.missing += 1,
            FileStatus::Differs => {
                looked.differ += 1;
                if looked.named.len() < NAMED {
                    looked.named.push(file.path.display().to_string());
                }
            }
        }
        Ok(())
    }

    /// Passes on every file of the new database.
    fn each(&self, file: &mut SlotVisitor<'_>) -> Result<(), ExportError> {
        for row in self.reader.workflows(None)?.into_iter().filter(|row| left_out(row).is_none()) {
            self.slots(&row.id, &mut |time, slot| {
                let Ok(record) = self.record(&slot)? else { return Ok(()) };
                file(TreeFile::slot(&row.id, time, &record))?;
                if self.needs_mark(&row, &slot, time) {
                    file(TreeFile::mark(&row.id, time, self.options.now))?;
                }
                Ok(())
            })?;
            if row.paused {
                file(TreeFile::paused(&row.id))?;
            }
        }
        for Register { bucket, key, value } in self.registers()? {
            if is_safe_register(&bucket, &key) {
                file(TreeFile::register(&bucket, &key, &value))?;
            }
        }
        Ok(())
    }

    fn slots(
        &self,
        id: &WorkflowId,
        each: &mut dyn FnMut(Timestamp, SlotRow) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let filter = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
        let mut from = None;
        loop {
            let page = self.reader.slots(&filter, PageRequest::newest(PAGE).after(from.as_deref()))?;
            // A workflow with a schedule may have jobs from an earlier definition, and slots that people started.
            let mut timed = page.rows.into_iter().filter_map(|row| Some((row.id.key.scheduled()?, row)));
            timed.try_for_each(|(time, row)| each(time, row))?;
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    fn registers(&self) -> Result<Vec<Register>, StoreError> {
        let mut registers = self.reader.registers(None, RegisterKeys::Prefix(""))?;
        // Users and tokens are nothing that Celos knows.
        registers.retain(|register| register.bucket != ACCESS_BUCKET);
        Ok(registers)
    }

    /// Celos ignores slots that are older than its window, or before their workflow's start, unless they are marked. Slots that
    /// are dormant here because of the start must be ignored there, too.
    fn needs_mark(&self, workflow: &WorkflowRow, row: &SlotRow, time: Timestamp) -> bool {
        let definition = &workflow.definition;
        let is_old = self.options.now.duration_since(time) > WINDOW;
        let rests = definition.out_of_bounds(&row.id.key, Some(&row.slot)).is_some();
        let is_before_start = definition.start_time.is_some_and(|start| time < start);
        !row.slot.state.is_final() && !rests && (is_old || is_before_start)
    }

    /// The record of a slot, or the reason why Celos can't have it.
    fn record(&self, row: &SlotRow) -> Result<Result<Record, String>, StoreError> {
        let status = Status::of(row.slot.state);
        if row.slot.run_alive
            && let Some(executor) = self.executor(&row.id, &row.slot)?.filter(|executor| executor != EXECUTOR)
        {
            return Ok(Err(format!(
                "its run goes on by the executor {executor}, about which Celos can't ask: left out; wait for its end, or kill it, and export again"
            )));
        }
        let started = !matches!(status, Status::Waiting | Status::Ready);
        let external_id = row.slot.external_id.clone().filter(|_| started);
        Ok(Ok(Record { status, external_id, retry_count: row.slot.retries }))
    }

    fn executor(&self, id: &SlotRef, slot: &Slot) -> Result<Option<String>, StoreError> {
        let runs = self.reader.slot_runs(id)?;
        Ok(runs.into_iter().find(|run| run.id.number == slot.last_run).map(|run| run.executor))
    }

    /// Ends the pauses of workflows that are not paused here.
    fn end_pauses(&self) -> Result<u32, ExportError> {
        let mut ended = 0;
        for row in self.reader.workflows(None)? {
            if !row.paused && left_out(&row).is_none() {
                ended += u32::from(self.tree.remove(&TreeFile::paused(&row.id))?);
            }
        }
        Ok(ended)
    }

    /// Counts the exported data, and reports what was left out.
    fn tell(&self, done: &mut ExportReport) -> Result<(), ExportError> {
        for row in self.reader.workflows(None)? {
            if let Some(why) = left_out(&row) {
                done.troubles.push(Trouble { path: row.id.to_string(), why: why.to_owned() });
                continue;
            }
            let mut slots = 0;
            self.slots(&row.id, &mut |time, slot| {
                match self.record(&slot)? {
                    Err(why) => done.troubles.push(Trouble { path: slot.id.to_string(), why }),
                    Ok(_) => {
                        slots += 1;
                        done.marked += u32::from(self.needs_mark(&row, &slot, time));
                        done.troubles.extend(unsure(&slot));
                    }
                }
                Ok(())
            })?;
            done.workflows.insert(row.id.to_string(), slots);
        }
        for Register { bucket, key, .. } in self.registers()? {
            if is_safe_register(&bucket, &key) {
                done.registers += 1;
            } else {
                let why = "no file can have this name: the register was left out".to_owned();
                done.troubles.push(Trouble { path: format!("{bucket}/{key}"), why });
            }
        }
        Ok(())
    }
}

/// The reason why Celos can't have a workflow.
fn left_out(row: &WorkflowRow) -> Option<&'static str> {
    if row.definition.keys.jobs().is_some() {
        return Some("its slots are jobs with ids, and Celos knows slots of times only: the workflow was left out");
    }
    (!is_safe_name(row.id.as_str())).then_some("no file can have this name: the workflow was left out")
}

fn is_safe_register(bucket: &str, key: &str) -> bool {
    (bucket.is_empty() || is_safe_name(bucket)) && is_safe_name(key)
}

/// A note on a slot whose job may have been submitted although its id is unknown.
fn unsure(row: &SlotRow) -> Option<Trouble> {
    (row.slot.state == SlotState::Dispatched).then(|| Trouble {
        path: row.id.to_string(),
        why: "its start was never confirmed: exported as READY, so Celos submits it; look in Oozie whether it runs already"
            .to_owned(),
    })
}
