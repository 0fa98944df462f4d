//! `kelos test`: workflows rehearsed over a virtual clock, and held against what test files expect.

mod find;
mod junit;
mod print;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kelos_executors::local;
use kelos_rehearsal::{Real, Rehearsals, Report, Verdict};
use kelos_sandbox::{Limits, Problem, TestSource};

use crate::apps;
use crate::failure::{BAD, Failure};
use crate::options::Form;
use crate::text::{self, count};
use find::TestFiles;

#[derive(clap::Args)]
pub(crate) struct TestArgs {
    /// Test files or folders; tests of a project are in tests/**/*.test.js and *.test.js
    #[arg(default_value = ".", value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Folder of the scripts under test [default: workflows/ of the nearest folder above the test that has one]
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workflows: Option<PathBuf>,
    /// Folder of imports, if it is elsewhere
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: Option<PathBuf>,
    /// Only tests with this text in their name or file name
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Also run tests with real commands; they are skipped otherwise
    #[arg(long)]
    pub(crate) real: bool,
    /// Keep the folders of real commands, and print where they are
    #[arg(long, requires = "real")]
    pub(crate) keep: bool,
    /// Write a JUnit report for CI servers
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Print warnings and details of each test
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    form: Form,
}

/// The outcome of a test file.
struct FileOutcome {
    /// Its name, as it is printed.
    label: String,
    /// Its problems, if it could not be read; warnings otherwise.
    problems: Vec<Problem>,
    tests: Vec<TestOutcome>,
}

/// The outcome of a test.
struct TestOutcome {
    name: String,
    line: u32,
    report: Report,
    took: Duration,
}

/// How many tests ended how.
#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    broken: usize,
    skipped: usize,
    slots: usize,
}

impl FileOutcome {
    fn is_broken(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }
}

impl Totals {
    fn of(files: &[FileOutcome]) -> Totals {
        let mut totals = Totals { broken: files.iter().filter(|file| file.is_broken()).count(), ..Totals::default() };
        for test in files.iter().flat_map(|file| &file.tests) {
            totals.slots += test.report.slots;
            match test.report.verdict {
                Verdict::Passed => totals.passed += 1,
                Verdict::Failed(_) => totals.failed += 1,
                Verdict::Broken(_) => totals.broken += 1,
                Verdict::Skipped(_) => totals.skipped += 1,
            }
        }
        totals
    }

    fn is_good(&self) -> bool {
        self.failed == 0 && self.broken == 0
    }
}

pub(crate) fn run(args: &TestArgs) -> Result<u8, Failure> {
    let found = find::files(args)?;
    let runtime = args.real.then(tokio::runtime::Runtime::new).transpose();
    let runtime = runtime.map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    let real = runtime.as_ref().map(|runtime| Real {
        runtime: runtime.handle().clone(),
        shim: local::own_shim(),
        keep: args.keep,
    });
    let begin = Instant::now();
    let mut files = Vec::new();
    for one in &found {
        let outcome = rehearse(one, args, real.clone());
        if !args.form.json {
            print::file(&outcome, args.verbose);
        }
        files.push(outcome);
    }
    let took = begin.elapsed();
    let totals = Totals::of(&files);
    if files.iter().all(|file| file.tests.is_empty() && !file.is_broken()) {
        return Err(no_tests(args, &found));
    }
    if let Some(path) = &args.junit {
        write_junit(path, &files)?;
    }
    match args.form.json {
        true => text::json(&print::as_json(&files, &totals, took)),
        false => text::line(print::totals(&totals, took)),
    }
    Ok(if totals.is_good() { 0 } else { BAD })
}

fn no_tests(args: &TestArgs, found: &[TestFiles]) -> Failure {
    let files = count(found.len(), "file");
    match &args.filter {
        Some(filter) => Failure::usage(format!("run tests: none in {files} has \"{filter}\" in its name")),
        None => Failure::usage(format!("run tests: there are none in {files}"))
            .hint("kelos.test(\"name\", {...}) makes one"),
    }
}

/// Rehearses the tests of a file, side by side on all processors.
fn rehearse(found: &TestFiles, args: &TestArgs, real: Option<Real>) -> FileOutcome {
    let mut outcome = FileOutcome { label: found.label.clone(), problems: Vec::new(), tests: Vec::new() };
    let limits = Limits::default();
    let source = match found.source(&limits) {
        Ok(source) => source,
        Err(problem) => return FileOutcome { problems: vec![problem], ..outcome },
    };
    let folders = found.folders.clone();
    let rehearsals = Rehearsals { folders, format: apps::format(), limits, project: found.project.clone(), real };
    let file = match rehearsals.open(&source) {
        Ok(file) => file,
        Err(problems) => return FileOutcome { problems, ..outcome },
    };
    outcome.problems = file.warnings().to_vec();
    let wanted = |name: &str| {
        let filter = args.filter.as_ref().map(|filter| filter.to_lowercase());
        filter
            .is_none_or(|filter| name.to_lowercase().contains(&filter) || found.label.to_lowercase().contains(&filter))
    };
    let tests: Vec<(String, u32)> =
        file.tests().iter().filter(|test| wanted(&test.name)).map(|test| (test.name.clone(), test.line)).collect();
    drop(file);
    outcome.tests = side_by_side(&tests, |(name, line)| one(&rehearsals, &source, found, name, *line));
    outcome
}

fn one(rehearsals: &Rehearsals, source: &TestSource, found: &TestFiles, name: &str, line: u32) -> TestOutcome {
    let begin = Instant::now();
    let beside = found.path.parent().unwrap_or(Path::new("."));
    let report = rehearsals.rehearse(source, beside, name);
    TestOutcome { name: name.to_owned(), line, report, took: begin.elapsed() }
}

/// Does work on all processors; the outcomes are in the order of the work.
fn side_by_side<T: Sync, R: Send>(work: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(work.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, item)) = next_of(work, &next) {
                    let outcome = one(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn next_of<'a, T>(work: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, work.get(number)?))
}

fn write_junit(path: &Path, files: &[FileOutcome]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::bad(format!("write {}: {error}", path.display()));
    let report = junit::report(files).map_err(fail)?;
    std::fs::write(path, report).map_err(fail)
}
