//! Test files, and the project that each belongs to.

use std::path::{Component, Path, PathBuf};

use kelos_sandbox::{Folders, Limits, Problem, ProblemCode, TEST_FILE, TestSource};

use super::TestArgs;
use crate::failure::Failure;
use crate::folder;

/// Test files that one call reads.
const MOST_FILES: usize = 10_000;

/// A test file.
pub(super) struct TestFiles {
    pub(super) path: PathBuf,
    /// Its name, as it is printed.
    pub(super) label: String,
    /// The folder of the project.
    pub(super) project: PathBuf,
    pub(super) folders: Folders,
}

impl TestFiles {
    /// Its text.
    pub(super) fn source(&self, limits: &Limits) -> Result<TestSource, Problem> {
        let text = kelos_sandbox::read_text(&self.path, limits.file_bytes);
        let text =
            text.map_err(|why| Problem::error(&self.label, ProblemCode::FileUnreadable, format!("the file {why}")))?;
        Ok(TestSource { file: self.label.clone(), text, defaults: self.folders.defaults.clone() })
    }
}

/// The test files of all that was named.
pub(super) fn files(args: &TestArgs) -> Result<Vec<TestFiles>, Failure> {
    let mut found: Vec<TestFiles> = Vec::new();
    for path in &args.paths {
        for file in named(path)? {
            let one = belonging(file, args)?;
            if !found.iter().any(|known| known.path == one.path) {
                found.push(one);
            }
        }
    }
    if found.is_empty() {
        let places: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        let what = format!("find a test: there is no *{TEST_FILE} in {} or its folder tests", places.join(", "));
        return Err(Failure::usage(what)
            .hint("a test is made by kelos.test(\"name\", {...}); `kelos types` prints all that it can say"));
    }
    Ok(found)
}

/// The test files that a path means: itself, or those of a folder.
fn named(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.is_file() {
        if path.to_string_lossy().ends_with(TEST_FILE) {
            return Ok(vec![path.to_owned()]);
        }
        let what = format!("use {} as a test file: expected a name that ends with {TEST_FILE}", path.display());
        return Err(Failure::usage(what));
    }
    folder::existing("folder of tests", path)?;
    let mut files = Vec::new();
    if is_project(path) {
        list(path, false, &mut files)?;
        list(&path.join("workflows"), false, &mut files)?;
        if folder::is_folder(&path.join("tests")) {
            list(&path.join("tests"), true, &mut files)?;
        }
    } else {
        list(path, true, &mut files)?;
    }
    files.sort();
    Ok(files)
}

/// Adds the test files of a folder, and of those in it; hidden ones and links are left out.
fn list(folder: &Path, deep: bool, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::usage(format!("list {}: {error}", folder.display()));
    let listed = folder.to_owned();
    for (path, kind) in kelos_sandbox::answered(move || entries_of(&listed)).map_err(fail)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if kind.is_dir() && deep {
            list(&path, deep, files)?;
        } else if !kind.is_dir() && name.ends_with(TEST_FILE) {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            return Err(Failure::usage(format!("list {}: there are more than {MOST_FILES} tests", folder.display())));
        }
    }
    Ok(())
}

/// The entries of a folder; links are not followed.
fn entries_of(folder: &Path) -> std::io::Result<Vec<(PathBuf, std::fs::FileType)>> {
    std::fs::read_dir(folder)?.map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))).collect()
}

fn is_project(dir: &Path) -> bool {
    folder::is_folder(&dir.join("workflows"))
}

/// A test file with its project: the nearest folder above it that has a folder `workflows`.
fn belonging(path: PathBuf, args: &TestArgs) -> Result<TestFiles, Failure> {
    let fail = |error: std::io::Error| Failure::usage(format!("read {}: {error}", path.display()));
    let label = label(&path);
    let path = std::fs::canonicalize(&path).map_err(fail)?;
    let beside = path.parent().unwrap_or(Path::new("/"));
    let project = beside.ancestors().find(|dir| is_project(dir)).unwrap_or(beside).to_owned();
    let mut folders = folder::folders(&project, args.defaults.as_deref());
    if let Some(workflows) = &args.workflows {
        folders.workflows = folder::existing("folder of workflows", workflows)?;
    }
    if folder::scripts(&folders)? == 0 {
        let what =
            format!("find the workflows that {label} tests: there is no *.js in {}", folders.workflows.display());
        return Err(Failure::usage(what).hint("--workflows names their folder"));
    }
    Ok(TestFiles { path, label, project, folders })
}

/// The path as it was named, without what says nothing.
fn label(path: &Path) -> String {
    let parts: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    parts.display().to_string()
}
