//! The space that everything takes on the machine of this server, and the consent to remove history.

use axum::http::StatusCode;
use jiff::Timestamp;
use kelos::history::{AGREED, ClockLeap, Consent, Figures, History, Share, Tally};
use kelos_core::SetRegister;
use kelos_model::Actor;
use kelos_model::history::HistorySettings;
use kelos_model::register::HISTORY_BUCKET;
use kelos_store::{EventFilter, PageRequest, SlotFilter};
use kelos_trust::Right;
use kelos_wire::{
    ClockLeapDto, DatabaseDto, FoldersDto, Instant, ProjectTermsDto, RunFoldersDto, StorageDto, WorkerStorageDto,
    WorkflowFoldersDto,
};
use serde_json::json;

use crate::app::App;
use crate::fault::Fault;

impl App {
    /// The sizes of what is stored, for callers who see all projects.
    ///
    /// # Errors
    /// When the caller sees some projects only, or the store can't be read.
    pub async fn storage(&self) -> Result<StorageDto, Fault> {
        self.require(Right::View, None, "what takes how much")?;
        let database = self.read(|reader| {
            let space = reader.space()?;
            let newest = reader.events(&EventFilter::default(), PageRequest::newest(1))?;
            let trimmed = reader.removed_history()?;
            Ok(DatabaseDto {
                bytes: space.map(|space| space.file),
                log_bytes: space.map(|space| space.log),
                free_bytes: space.map(|space| space.free),
                events: newest.rows.first().map_or(0, |event| event.seq).saturating_sub(trimmed.events),
                slots: reader.slot_counts(&SlotFilter::default())?.values().sum(),
                removed_until: trimmed.at.map(Instant),
                removed_events: trimmed.events,
                removed_runs: trimmed.runs,
                ..DatabaseDto::default()
            })
        });
        let (mut database, workers) = (database.await?, self.worker_storage());
        let Some(history) = self.node().history() else {
            return Ok(StorageDto { database, workers, ..StorageDto::default() });
        };
        if let Some(found) = history.database() {
            database.consent = Some(consent(found.consent).to_owned());
            (database.looked_at, database.going_events) = (Some(found.at.into()), found.going);
        }
        let figures = history.figures();
        let consents = [figures.as_ref().map(|found| found.consent), history.database().map(|found| found.consent)];
        let leap = consents.into_iter().flatten().find_map(Consent::leap);
        let (terms, projects) = terms(history.settings());
        Ok(StorageDto {
            database,
            terms,
            projects,
            consent: figures.as_ref().map(|figures| consent(figures.consent).to_owned()),
            clock_leap: leap.map(|ClockLeap { from, to }| ClockLeapDto { from: from.into(), to: to.into() }),
            runs: figures.map(|figures| folders(&figures)),
            removed: tally(history.removed()),
            workers,
            problem: history.problem(),
        })
    }

    /// The folders of workers on other machines, as far as they told this server.
    fn worker_storage(&self) -> Vec<WorkerStorageDto> {
        let workers = self.node().desk().workers().into_iter();
        workers.filter_map(|one| Some(WorkerStorageDto { worker: one.name.to_string(), runs: one.folders? })).collect()
    }

    /// Records the consent to remove history and folders of runs, on all nodes that share the log, and has this one look at once.
    ///
    /// # Errors
    /// When the caller is no administrator, this server keeps everything, or it can't be recorded.
    pub async fn agree_to_history(&self, by: &Actor, reason: Option<String>) -> Result<(), Fault> {
        self.require(Right::Admin, None, "the consent to remove history")?;
        let Some(history) = self.node().history().filter(|history| history.settings().term().is_some()) else {
            let why = "this server removes no history: \"history\" in the file of --config is \"all\"";
            return Err(Fault::new(StatusCode::CONFLICT, "history-kept", why));
        };
        let value = json!({"at": Instant(self.handle().now()), "by": by.to_string()});
        let (bucket, key) = (HISTORY_BUCKET.to_owned(), AGREED.to_owned());
        self.ask(by, SetRegister { bucket, key, value: Some(value), reason }).await?;
        History::look(history);
        Ok(())
    }
}

fn terms(settings: &HistorySettings) -> (Option<String>, Vec<ProjectTermsDto>) {
    let Some(term) = settings.term() else { return (None, Vec::new()) };
    let own = term.projects.iter();
    let own = own.map(|(project, keeping)| ProjectTermsDto { project: project.clone(), terms: keeping.words() });
    (Some(term.words()), own.collect())
}

fn consent(consent: Consent) -> &'static str {
    match consent {
        Consent::New => "new",
        Consent::Agreed => "agreed",
        Consent::Missing | Consent::Leapt(_) => "missing",
    }
}

fn tally(Tally { folders, bytes }: Tally) -> FoldersDto {
    FoldersDto { folders, bytes }
}

fn folders(figures: &Figures) -> RunFoldersDto {
    let share = |Share { workflow, tally }: &Share| WorkflowFoldersDto {
        workflow: workflow.clone(),
        folders: tally.folders,
        bytes: tally.bytes,
    };
    RunFoldersDto {
        looked_at: figures.at.into(),
        took_millis: u64::try_from(figures.took.as_millis()).unwrap_or(u64::MAX),
        all: tally(figures.all),
        workflows: figures.largest.iter().map(share).collect(),
        more_workflows: figures.more_workflows,
        going: tally(figures.going),
        held: tally(figures.held),
        soon: tally(figures.soon),
        next_at: figures.next.as_ref().map(|(at, _): &(Timestamp, String)| Instant(*at)),
        next_workflow: figures.next.as_ref().map(|(_, workflow)| workflow.clone()),
    }
}
