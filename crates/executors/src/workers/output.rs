//! The output of runs, wherever it is: in the folder of the leader, on the disk of a worker, which is asked for it, or in a copy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::RunId;
use kelos_model::time::format_short;
use kelos_wire::{
    OutputAnswerDto, OutputBytes, OutputLineReadDto, OutputLinesReadDto, OutputPartDto, OutputPieceDto,
    OutputQuestionDto, OutputReadDto, OutputRemovalDto,
};
use tokio::sync::oneshot;

use super::verdict::ExternalId;
use crate::local::{Launcher, LocalError, LogChunk, LogLine, LogLines, OutputFolder, Stream};
use crate::run_ref;

/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The most bytes of output that a worker sends at once.
const LARGEST_PIECE: usize = 256 << 10;

/// Questions to workers that wait for their answers.
#[derive(Default)]
pub(super) struct Questions(Mutex<OpenQuestions>);

#[derive(Default)]
struct OpenQuestions {
    asked: u64,
    by_number: BTreeMap<u64, oneshot::Sender<OutputAnswerDto>>,
}

impl Questions {
    fn waiting(&self) -> MutexGuard<'_, OpenQuestions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> (u64, oneshot::Receiver<OutputAnswerDto>) {
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.asked += 1;
        let number = waiting.asked;
        waiting.by_number.insert(number, answer);
        (number, answered)
    }

    fn forget(&self, number: u64) {
        self.waiting().by_number.remove(&number);
    }

    /// Passes answers on to those who wait for them.
    pub(super) fn answered(&self, answers: &[OutputAnswerDto]) {
        for answer in answers {
            if let Some(asker) = self.waiting().by_number.remove(&answer.number) {
                // Whoever does not wait any more needs no answer.
                let _ = asker.send(answer.clone());
            }
        }
    }
}

/// The part of a hub that asks workers for output.
pub(super) trait OutputDesk: Send + Sync {
    /// The launcher, which has the output of the runs that are here.
    fn launcher(&self) -> &Launcher;

    /// The questions that wait for answers.
    fn questions(&self) -> &Questions;

    /// Asks a worker; false where it is not there.
    fn ask(&self, worker: &Arc<str>, question: OutputQuestionDto) -> bool;

    /// The last heartbeat of a worker that is not there.
    fn away_since(&self, worker: &Arc<str>) -> Option<Timestamp>;
}

/// The output of a run, where it was found.
enum OutputSource {
    /// In a folder of this machine.
    Folder(OutputFolder),
    /// At a worker, which has read a part of it.
    Worker(OutputReadDto),
}

/// A reader of the output of one run.
pub struct OutputReader {
    desk: Arc<dyn OutputDesk>,
    run: RunId,
    /// The worker on another machine that has it.
    worker: Option<Arc<str>>,
    end: RunEnd,
}

/// The end of a run whose output is read.
#[derive(Clone, Copy)]
enum RunEnd {
    /// None is known.
    Open,
    /// It ended then.
    At(Timestamp),
    /// Its record was removed, with the history up to a moment.
    Removed(Option<Timestamp>),
}

impl OutputReader {
    /// The reader of a run with this name at its executor.
    pub(super) fn new(desk: Arc<dyn OutputDesk>, run: &RunId, external_id: Option<&str>) -> OutputReader {
        let read = external_id.map(ExternalId::read).unwrap_or_default();
        let worker = read.worker.filter(|_| read.loss.is_some());
        OutputReader { desk, run: run.clone(), worker, end: RunEnd::Open }
    }

    /// The same of a run that ended then, if it has ended.
    #[must_use]
    pub fn of_end(self, ended_at: Option<Timestamp>) -> OutputReader {
        OutputReader { end: ended_at.map_or(RunEnd::Open, RunEnd::At), ..self }
    }

    /// The same of a run whose record was removed, with the history up to a moment: it has its output, a copy of it, or lost it.
    #[must_use]
    pub fn of_removed(self, until: Option<Timestamp>) -> OutputReader {
        OutputReader { end: RunEnd::Removed(until), ..self }
    }

    /// Reads a piece, see [`read_log`](crate::local::read_log).
    ///
    /// # Errors
    /// When it can't be read, or its worker is away.
    pub async fn piece(&self, offset: u64, most: usize) -> Result<LogChunk, LocalError> {
        match self.asked(OutputPartDto::Piece(offset, most.min(LARGEST_PIECE))).await? {
            OutputSource::Folder(folder) => folder.piece(offset, most).await,
            OutputSource::Worker(OutputReadDto::Piece(piece)) => Ok(piece_of(piece)),
            OutputSource::Worker(_) => Err(self.other()),
        }
    }

    /// Reads lines, see [`read_lines`](crate::local::read_lines).
    ///
    /// # Errors
    /// When they can't be read, or its worker is away.
    pub async fn lines(&self, offset: u64, most: usize) -> Result<LogLines, LocalError> {
        match self.asked(OutputPartDto::Lines(offset, most.min(LARGEST_PIECE))).await? {
            OutputSource::Folder(folder) => folder.lines(offset, most).await,
            OutputSource::Worker(OutputReadDto::Lines(lines)) => Ok(lines_of(lines)),
            OutputSource::Worker(_) => Err(self.other()),
        }
    }

    /// Reads the last lines, see [`last_lines`](crate::local::last_lines).
    ///
    /// # Errors
    /// When they can't be read, or its worker is away.
    pub async fn last_lines(&self, lines: usize, most: usize) -> Result<LogLines, LocalError> {
        match self.asked(OutputPartDto::LastLines(lines, most.min(LARGEST_PIECE))).await? {
            OutputSource::Folder(folder) => folder.last_lines(lines, most).await,
            OutputSource::Worker(OutputReadDto::Lines(lines)) => Ok(lines_of(lines)),
            OutputSource::Worker(_) => Err(self.other()),
        }
    }

    /// The last line with text, see [`last_line`](crate::local::last_line).
    ///
    /// # Errors
    /// When it can't be read, or its worker is away.
    pub async fn last_line(&self) -> Result<Option<String>, LocalError> {
        match self.asked(OutputPartDto::LastLine).await? {
            OutputSource::Folder(folder) => folder.last_line().await,
            OutputSource::Worker(OutputReadDto::LastLine(line)) => Ok(line),
            OutputSource::Worker(_) => Err(self.other()),
        }
    }

    /// The number of bytes that were written so far, dropped ones included.
    ///
    /// # Errors
    /// When that can't be read, or its worker is away.
    pub async fn length(&self) -> Result<u64, LocalError> {
        match self.asked(OutputPartDto::Length).await? {
            OutputSource::Folder(folder) => folder.length().await,
            OutputSource::Worker(OutputReadDto::Length(length)) => Ok(length),
            OutputSource::Worker(_) => Err(self.other()),
        }
    }

    /// The output where it can be read: here, or as the answer of the worker that has it; else its copy.
    async fn asked(&self, part: OutputPartDto) -> Result<OutputSource, LocalError> {
        let (launcher, run) = (self.desk.launcher(), run_ref(&self.run));
        let first = match &self.worker {
            Some(worker) => match self.at_worker(worker, part).await {
                Ok(read) => return Ok(OutputSource::Worker(read)),
                Err(error) => Some(error),
            },
            // A run of another node of several has none here.
            None if launcher.has(&run) => return Ok(OutputSource::Folder(launcher.output(&run))),
            None => None,
        };
        match (launcher.copied_output(&run).await, first) {
            (Ok(Some(copy)), _) => Ok(OutputSource::Folder(copy)),
            (Ok(None), Some(first)) => Err(first),
            (Err(why), Some(first)) => Err(LocalError::NoCopy { first: Box::new(first), why }),
            (Err(why), None) => {
                let first = Box::new(LocalError::NotStarted(run.to_string()));
                Err(LocalError::NoCopy { first, why })
            }
            (Ok(None), None) => {
                let removed = match self.end {
                    // It may not have its folder yet.
                    RunEnd::Open => None,
                    RunEnd::At(at) => launcher.removal(&run, Some(at)).await,
                    RunEnd::Removed(until) => match launcher.removal(&run, None).await {
                        Some(noted @ LocalError::Removed { .. }) => Some(noted),
                        _ => {
                            let until = until.map(|at| format!(" up to {}", format_short(at))).unwrap_or_default();
                            Some(LocalError::GoneWithHistory { run: run.to_string(), until })
                        }
                    },
                };
                removed.map_or_else(|| Ok(OutputSource::Folder(launcher.output(&run))), Err)
            }
        }
    }

    /// The answer of the worker that has the output.
    async fn at_worker(&self, worker: &Arc<str>, part: OutputPartDto) -> Result<OutputReadDto, LocalError> {
        let (number, answered) = self.desk.questions().add();
        let question = OutputQuestionDto { number, run: self.run.clone(), part };
        if !self.desk.ask(worker, question) {
            self.desk.questions().forget(number);
            return Err(self.away(worker));
        }
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => self.understood(worker, answer),
            Ok(Err(_)) | Err(_) => {
                self.desk.questions().forget(number);
                let why = format!("get an answer from it within {} s", PATIENCE.as_secs());
                Err(LocalError::AtWorker { worker: worker.to_string(), why })
            }
        }
    }

    /// The part that a worker read, or its reason as the same error that the leader has for a folder of its own.
    fn understood(&self, worker: &Arc<str>, answer: OutputAnswerDto) -> Result<OutputReadDto, LocalError> {
        let run = || run_ref(&self.run).to_string();
        answer.read.map_err(|why| match answer.removal {
            Some(OutputRemovalDto::Known { on, why }) => LocalError::Removed { run: run(), on, why },
            Some(OutputRemovalDto::Possible) => LocalError::RemovedOrNone(run()),
            None => LocalError::AtWorker { worker: worker.to_string(), why },
        })
    }

    fn away(&self, worker: &Arc<str>) -> LocalError {
        let since = self.desk.away_since(worker);
        let since = since.map(|at| format!(" since {}", kelos_model::time::format_short(at))).unwrap_or_default();
        LocalError::WorkerAway { worker: worker.to_string(), since }
    }

    fn other(&self) -> LocalError {
        let worker = self.worker.as_deref().unwrap_or_default().to_owned();
        LocalError::AtWorker { worker, why: "understand its answer: it is one to another question".to_owned() }
    }
}

/// Reads what a leader asked for.
pub(super) async fn answer(launcher: &Launcher, question: &OutputQuestionDto) -> OutputAnswerDto {
    let run = run_ref(&question.run);
    if !launcher.has(&run)
        && let Some(removed) = launcher.removal(&run, None).await
    {
        let read = Err(removed.to_string());
        return OutputAnswerDto { number: question.number, read, removal: removal_dto(removed) };
    }
    let output = launcher.output(&run);
    let read = match question.part {
        OutputPartDto::Piece(offset, most) => {
            let piece = output.piece(offset, most.min(LARGEST_PIECE)).await;
            piece.map(|piece| OutputReadDto::Piece(piece_dto(piece)))
        }
        OutputPartDto::Lines(offset, most) => {
            let lines = output.lines(offset, most.min(LARGEST_PIECE)).await;
            lines.map(|lines| OutputReadDto::Lines(lines_dto(lines)))
        }
        OutputPartDto::LastLines(count, most) => {
            let lines = output.last_lines(count, most.min(LARGEST_PIECE)).await;
            lines.map(|lines| OutputReadDto::Lines(lines_dto(lines)))
        }
        OutputPartDto::LastLine => output.last_line().await.map(OutputReadDto::LastLine),
        OutputPartDto::Length => output.length().await.map(OutputReadDto::Length),
    };
    OutputAnswerDto { number: question.number, read: read.map_err(|error| error.to_string()), removal: None }
}

fn removal_dto(error: LocalError) -> Option<OutputRemovalDto> {
    match error {
        LocalError::Removed { on, why, .. } => Some(OutputRemovalDto::Known { on, why }),
        LocalError::RemovedOrNone(_) => Some(OutputRemovalDto::Possible),
        _ => None,
    }
}

fn piece_dto(LogChunk { offset, bytes, next_offset, dropped, ended }: LogChunk) -> OutputPieceDto {
    OutputPieceDto { offset, bytes: OutputBytes(bytes), next_offset, dropped, ended }
}

fn piece_of(OutputPieceDto { offset, bytes, next_offset, dropped, ended }: OutputPieceDto) -> LogChunk {
    LogChunk { offset, bytes: bytes.0, next_offset, dropped, ended }
}

fn lines_dto(LogLines { lines, next_offset, dropped, ended }: LogLines) -> OutputLinesReadDto {
    let line = |LogLine { offset, at, stream, bytes, whole }: LogLine| OutputLineReadDto {
        offset,
        at,
        stream: stream.map(|stream| stream.as_str().to_owned()),
        bytes: OutputBytes(bytes),
        whole,
    };
    OutputLinesReadDto { lines: lines.into_iter().map(line).collect(), next_offset, dropped, ended }
}

fn lines_of(OutputLinesReadDto { lines, next_offset, dropped, ended }: OutputLinesReadDto) -> LogLines {
    let line = |OutputLineReadDto { offset, at, stream, bytes, whole }: OutputLineReadDto| LogLine {
        offset,
        at,
        stream: stream.and_then(|name| Stream::ALL.into_iter().find(|stream| stream.as_str() == name)),
        bytes: bytes.0,
        whole,
    };
    LogLines { lines: lines.into_iter().map(line).collect(), next_offset, dropped, ended }
}
