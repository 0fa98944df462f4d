//! JavaScript definitions: a folder of scripts becomes workflows, in a sandbox.
//!
//! Scripts produce data. Each file has a world of its own: a runtime with a memory limit, a time
//! limit, and nothing of the machine but what [`Host`] hands in. The world is thrown away once the
//! file is read; the few functions that stay in a script (properties of a slot, custom triggers) are
//! called in a world that is made again from the same text and the same inputs.
//!
//! A file is all or nothing: an error anywhere in it keeps the file's last good version, whole.
//! That differs from Celos, which keeps the definitions before the error.

mod application;
pub mod apps;
mod check;
mod code;
mod desk;
mod digest;
mod draft;
mod endless;
mod events;
mod fault;
mod fields;
mod files;
mod flows;
mod host;
mod host_functions;
mod keyed;
mod library;
mod limits;
mod load;
mod mistakes;
mod position;
mod problem;
mod project;
mod realm;
mod recipe;
mod sample;
mod scan;
mod scripts;
mod secrets;
mod session;
mod statement;
mod test_case;
mod test_file;
mod watch;
mod worker;
mod written_path;

pub use check::{check, warnings};
pub use code::{ProblemCode, fault_code};
pub use draft::{ConstraintDraft, FlowDraft};
pub use endless::endless_waits;
pub use files::{answered, read_file, read_text};
pub use host::{Host, NoRegisters, RegisterError, Registers, Sandbox};
pub use kelos_model::similar::closest;
pub use limits::{Folders, Limits};
pub use load::{LoadResult, RegisterRead};
pub use mistakes::unserved;
pub use problem::{Problem, Severity};
pub use project::Project;
pub use scan::TEST_FILE;
pub use scripts::{CallError, Scripts};
pub use secrets::not_allowed;
pub use test_case::{
    Before, Compare, Expectations, ExpectedCounts, ExpectedFile, ExpectedRun, ExpectedState, Fake, FakeRun, FakeWrite,
    TestAction, TestCase, TestExecutors, TestFunction, TestInput, TestPaths, TestPlan, TestVerb,
};
pub use test_file::{TestFile, TestSource};
pub use written_path::check_written_path;

/// The type declarations for completion and documentation in editors: the text of `kelos.d.ts`.
pub const TYPES: &str = include_str!("../kelos.d.ts");
