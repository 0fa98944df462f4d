//! A test file in a world of its own, on a thread of its own: its tests, and calls of their functions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::code::ProblemCode;
use crate::host::Host;
use crate::limits::Limits;
use crate::problem::Problem;
use crate::realm::Realm;
use crate::recipe::{Recipe, Role};
use crate::session::Session;
use crate::test_case::{TestCase, TestFunction};
use crate::worker::{STACK_ROOM, guarded};

/// The text of a test file, and the folder that it may import from.
#[derive(Debug, Clone)]
pub struct TestSource {
    /// Its name in problems; ends with `.js`.
    pub file: String,
    /// Its text.
    pub text: Arc<str>,
    /// The folder that `celos.importDefaults` imports from.
    pub defaults: PathBuf,
}

struct Call {
    function: TestFunction,
    argument: String,
    reply: Sender<Result<String, Problem>>,
}

/// A test file that was evaluated. Each has its own variables, also where the same file is opened twice.
#[derive(Debug)]
pub struct TestFile {
    file: String,
    tests: Vec<TestCase>,
    warnings: Vec<Problem>,
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

struct TestContents {
    tests: Vec<TestCase>,
    warnings: Vec<Problem>,
}

impl TestFile {
    /// Evaluates a test file.
    ///
    /// # Errors
    /// The problems of the file; also if the system refuses a thread.
    pub fn open(source: TestSource, limits: Limits, host: Host) -> Result<TestFile, Vec<Problem>> {
        let file = source.file.clone();
        let (calls, inbox) = channel();
        let (say, opened) = channel();
        let thread = std::thread::Builder::new()
            .name("test-file".to_owned())
            .stack_size(limits.stack_bytes + STACK_ROOM)
            .spawn(move || live(&source, &limits, host, &say, &inbox))
            .map_err(|error| {
                vec![Problem::error(&file, ProblemCode::Bug, format!("failed to start a thread: {error}"))]
            })?;
        let gone =
            || Err(vec![Problem::error(&file, ProblemCode::Bug, "the thread of the test file is gone".to_owned())]);
        let opened: TestContents = opened.recv().unwrap_or_else(|_| gone())?;
        let TestContents { tests, warnings } = opened;
        Ok(TestFile { file, tests, warnings, calls: Some(calls), thread: Some(thread) })
    }

    /// The tests, in the order of the file.
    #[must_use]
    pub fn tests(&self) -> &[TestCase] {
        &self.tests
    }

    /// The warnings of its evaluation.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Calls a function of a test.
    ///
    /// # Errors
    /// When the function throws, takes too long, or answers with something else than is expected of its kind.
    pub fn call(&self, function: TestFunction, argument: &Value) -> Result<Value, Problem> {
        let (reply, answer) = channel();
        let call = Call { function, argument: argument.to_string(), reply };
        let gone = || Problem::error(&self.file, ProblemCode::Bug, "the thread of the test file is gone".to_owned());
        let calls = self.calls.as_ref().ok_or_else(gone)?;
        calls.send(call).map_err(|_| gone())?;
        let json = answer.recv().map_err(|_| gone())??;
        serde_json::from_str(&json)
            .map_err(|error| Problem::error(&self.file, ProblemCode::BadAnswer, error.to_string()))
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        drop(self.calls.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it mattered.
            let _ = thread.join();
        }
    }
}

/// The thread: evaluates the file, then answers calls until the handle is dropped.
fn live(
    source: &TestSource,
    limits: &Limits,
    host: Host,
    say: &Sender<Result<TestContents, Vec<Problem>>>,
    inbox: &Receiver<Call>,
) {
    let session = Session::new(source.defaults.clone(), limits.file_bytes, host);
    let recipe = Recipe {
        number: 0,
        file: source.file.as_str().into(),
        text: source.text.clone(),
        session: Arc::new(session),
        role: Role::Tests,
    };
    let evaluated = guarded(&recipe.file, || Realm::evaluate(&recipe, limits));
    let (realm, evaluated) = match evaluated {
        Ok((Some(realm), evaluated)) if !evaluated.failed => (realm, evaluated),
        Ok((_, evaluated)) => return drop(say.send(Err(evaluated.problems))),
        Err(problem) => return drop(say.send(Err(vec![problem]))),
    };
    if say.send(Ok(TestContents { tests: evaluated.tests, warnings: evaluated.problems })).is_err() {
        return;
    }
    for Call { function, argument, reply } in inbox {
        let answer = guarded(&recipe.file, || realm.call_test(function, &argument));
        let _ = reply.send(answer.and_then(|answer| answer));
    }
}
