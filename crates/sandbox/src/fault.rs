//! From a thrown value to a problem with a place.

use std::sync::Arc;

use rquickjs::{Ctx, Exception, Value};

use crate::closest;
use crate::code::ProblemCode;
use crate::problem::{Problem, SourcePosition};

/// The name under which the prelude's frames appear in stacks.
pub(crate) const PRELUDE: &str = "kelos:prelude";

/// The property of an error of the prelude that has its code.
pub(crate) const CODE: &str = "kelosCode";

/// The places in scripts that a stack names, innermost first: frames of the prelude and of the
/// engine are left out.
pub(crate) fn places(stack: &str) -> Vec<SourcePosition> {
    stack.lines().filter_map(place).filter(|place| place.file.ends_with(".js")).collect()
}

/// `at f (file.js:3:7)`, `at file.js:3:7`.
fn place(frame: &str) -> Option<SourcePosition> {
    let frame = frame.trim().strip_prefix("at ")?;
    let inner = match frame.rfind(" (") {
        Some(start) if frame.ends_with(')') => &frame[start + 2..frame.len() - 1],
        _ => frame,
    };
    let mut parts = inner.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some(SourcePosition { file: parts.next()?.to_owned(), line, column })
}

/// Whether a function is called where it was read from its object: in the same statement of the same call, as far as
/// stacks show.
pub(crate) fn same_statement(looked: Option<&str>, called: &str) -> bool {
    let (Some(looked), called) = (looked.map(places), places(called)) else {
        return false;
    };
    match (looked.split_first(), called.split_first()) {
        (Some((at, outer)), Some((then, outer_then))) => {
            at.file == then.file && at.line <= then.line && outer == outer_then
        }
        _ => false,
    }
}

/// The limit that ended an evaluation or a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// It ran longer than this many milliseconds.
    Time(u64),
    /// Its time by the clock was over, these milliseconds, before it had its share of the processor.
    Starved(u64),
    /// It needed more memory than this many bytes.
    Memory(usize),
}

/// A thrown value, in words.
#[derive(Debug, Default)]
pub(crate) struct ThrownValue {
    /// The code that the prelude gave it; none where the script threw it.
    code: Option<ProblemCode>,
    message: String,
    places: Vec<SourcePosition>,
    hint: Option<String>,
    memory: bool,
    null: bool,
}

impl ThrownValue {
    /// Takes the pending exception. Reading it may run code of the script: the time limit must hold. `known` is the
    /// text that was thrown last as Celos throws it; its message for people replaces it.
    pub(crate) fn take(ctx: &Ctx<'_>, known: Option<&[String; 3]>) -> ThrownValue {
        let value = ctx.catch();
        let text = value.as_string().and_then(|text| text.to_string().ok());
        if let Some([_, told, stack]) = known.filter(|[known, ..]| text.as_ref() == Some(known)) {
            let code = Some(ProblemCode::BadArgument);
            return ThrownValue { code, message: told.clone(), places: places(stack), ..ThrownValue::default() };
        }
        match value.as_object().cloned().and_then(Exception::from_object) {
            Some(error) => ThrownValue::error(ctx, &error),
            None => ThrownValue::other(ctx, &value),
        }
    }

    /// A failure that is no exception of the script.
    pub(crate) fn words(message: String) -> ThrownValue {
        ThrownValue { code: Some(ProblemCode::Bug), message, ..ThrownValue::default() }
    }

    fn error(ctx: &Ctx<'_>, error: &Exception<'_>) -> ThrownValue {
        let name = error.get::<_, rquickjs::Coerced<String>>("name").map(|name| name.0);
        let code = error.get::<_, String>(CODE).ok().and_then(|code| ProblemCode::read(&code));
        let (message, stack) = (error.message().unwrap_or_default(), error.stack().unwrap_or_default());
        // A getter of the script may have thrown while it was read.
        drop(ctx.catch());
        let memory = message == "out of memory";
        let code = code.or_else(|| of_engine(name.as_deref().ok()?, &message));
        let message = match name.as_deref() {
            _ if message.is_empty() => "an error without a message was thrown".to_owned(),
            Ok("Error") | Err(_) => message,
            Ok(name) => format!("{name}: {message}"),
        };
        ThrownValue { code, message, places: places(&stack), hint: None, memory, null: false }
    }

    fn other<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> ThrownValue {
        let words = match value.as_string().and_then(|text| text.to_string().ok()) {
            Some(text) => format!("thrown text: {text}"),
            None => {
                let json = ctx.json_stringify(value.clone()).ok().flatten().and_then(|json| json.to_string().ok());
                drop(ctx.catch());
                format!("thrown value: {}", json.unwrap_or_else(|| value.type_name().to_owned()))
            }
        };
        if value.is_null() {
            // With no memory left there is none for an Error either, and the engine throws null.
            let message = "null was thrown: by the script, or because it ran out of memory".to_owned();
            return ThrownValue { message, null: true, ..ThrownValue::default() };
        }
        let hint = "throw new Error(\"...\") instead, so that the place is known".to_owned();
        ThrownValue { message: words, hint: Some(hint), ..ThrownValue::default() }
    }

    /// Whether the script ran out of memory; `full` returns whether much of it is in use.
    pub(crate) fn is_memory(&self, full: impl FnOnce() -> bool) -> bool {
        self.memory || (self.null && full())
    }

    fn code(&self, stopped: Option<StopReason>) -> ProblemCode {
        match stopped {
            Some(StopReason::Time(_)) => ProblemCode::OutOfTime,
            Some(StopReason::Starved(_)) => ProblemCode::MachineBusy,
            Some(StopReason::Memory(_)) => ProblemCode::OutOfMemory,
            None => self.code.unwrap_or(ProblemCode::ScriptThrew),
        }
    }

    /// Whether null was thrown.
    pub(crate) fn is_null(&self) -> bool {
        self.null
    }

    /// The problem, with a place and a hint as good as they can be.
    pub(crate) fn problem(
        self,
        file: &str,
        stopped: Option<StopReason>,
        sources: &dyn Fn(&str) -> Option<Arc<str>>,
    ) -> Problem {
        let code = self.code(stopped);
        let mut problem = Problem::error(file, code, self.message);
        problem.hint = self.hint;
        match stopped {
            Some(StopReason::Time(millis)) => {
                problem.message =
                    format!("stopped after {millis} ms of processor time: expected the script to be done by then");
                problem.hint = Some("is there a loop without an end at this place, or shortly after it?".to_owned());
            }
            Some(StopReason::Starved(millis)) => {
                problem.message = format!("stopped after {millis} ms: expected the script to be done by then");
                problem.hint = Some("the machine is too busy, or what the script looks at is slow".to_owned());
            }
            Some(StopReason::Memory(bytes)) => {
                problem.message = format!("out of memory: expected the file to need at most {} MiB", bytes >> 20);
                problem.hint = None;
            }
            None => {}
        }
        locate(&mut problem, &self.places, sources);
        if problem.hint.is_none() {
            problem.hint = hint(&problem);
        }
        add_caller(&mut problem, file, &self.places);
        problem
    }
}

/// The code of an error that the engine itself threw, by the name of the error.
fn of_engine(name: &str, message: &str) -> Option<ProblemCode> {
    match name {
        "SyntaxError" => Some(ProblemCode::SyntaxError),
        "ReferenceError" => Some(ProblemCode::UnknownName),
        "RangeError" | "InternalError" if message.contains("stack") => Some(ProblemCode::OutOfMemory),
        _ => None,
    }
}

/// A problem at the innermost place of a stack.
pub(crate) fn at_stack(mut problem: Problem, stack: &str, sources: &dyn Fn(&str) -> Option<Arc<str>>) -> Problem {
    locate(&mut problem, &places(stack), sources);
    problem
}

/// Sets file, line, column and source line from the innermost place.
pub(crate) fn locate(problem: &mut Problem, places: &[SourcePosition], sources: &dyn Fn(&str) -> Option<Arc<str>>) {
    let Some(place) = places.first() else {
        return;
    };
    problem.file.clone_from(&place.file);
    problem.line = place.line;
    problem.column = place.column;
    let line = usize::try_from(place.line).unwrap_or(0).saturating_sub(1);
    problem.source_line = sources(&place.file).and_then(|text| {
        let line = text.lines().nth(line)?;
        Some(line.chars().take(400).collect())
    });
}

/// Adds to a problem inside a defaults file the line of the importing file that led there.
fn add_caller(problem: &mut Problem, file: &str, places: &[SourcePosition]) {
    if problem.file == file {
        return;
    }
    if let Some(caller) = places.iter().find(|place| place.file == file) {
        let from = format!("called from {}:{}:{}", caller.file, caller.line, caller.column);
        problem.hint = Some(match problem.hint.take() {
            Some(hint) => format!("{hint}; {from}"),
            None => from,
        });
    }
}

/// The names that scripts find in their world.
const GLOBALS: [&str; 9] = [
    "celos",
    "kelos",
    "importDefaults",
    "ScheduledTime",
    "SlotID",
    "WorkflowID",
    "CELOS_DEFAULT_HDFS",
    "CELOS_DEFAULT_OOZIE",
    "CELOS_DEFAULT_OOZIE_PROPERTIES",
];
/// Names that only Rhino has.
const JAVA: [&str; 9] =
    ["java", "javax", "org", "com", "Packages", "JavaAdapter", "JavaImporter", "importPackage", "importClass"];
/// Names that other JavaScript hosts have.
const ABSENT: [&str; 13] = [
    "require",
    "process",
    "console",
    "print",
    "fetch",
    "setTimeout",
    "setInterval",
    "module",
    "load",
    "readFile",
    "spawn",
    "runCommand",
    "XMLHttpRequest",
];
/// Functions of `celos` that old scripts call without `celos.`.
const UNPREFIXED: [&str; 14] = [
    "defineWorkflow",
    "addWorkflow",
    "hourlySchedule",
    "minutelySchedule",
    "cronSchedule",
    "dependentSchedule",
    "serialSchedulingStrategy",
    "alwaysTrigger",
    "hdfsCheckTrigger",
    "successTrigger",
    "andTrigger",
    "delayTrigger",
    "oozieExternalService",
    "hdfsPath",
];

fn hint(problem: &Problem) -> Option<String> {
    let line = problem.source_line.as_deref().unwrap_or_default();
    if let Some(name) =
        problem.message.strip_prefix("ReferenceError: ").and_then(|rest| rest.strip_suffix(" is not defined"))
    {
        return unknown_name(name.trim_matches('\''), line);
    }
    if problem.message.contains("redeclaration") {
        return Some("a defaults file that is imported twice has to use var, not let, const or class".to_owned());
    }
    if !problem.message.starts_with("SyntaxError") {
        return None;
    }
    unreadable(line).map(str::to_owned)
}

/// The hint for a line with syntax of Rhino's JavaScript 1.7 that isn't JavaScript.
fn unreadable(line: &str) -> Option<&'static str> {
    let follows = |first: &str, then: &str| line.find(first).is_some_and(|at| line[at..].contains(then));
    if follows("[", " for (") || follows("[", " for each") {
        return Some("array comprehensions are not JavaScript: write array.filter(...).map(...)");
    }
    if line.contains("for each") {
        return Some("'for each' is not JavaScript: write for (const value of Object.values(object))");
    }
    if ["= <", "=<", "(<", "return <"].iter().any(|start| line.contains(start)) {
        return Some("XML literals (E4X) are not JavaScript: write the text of the XML in quotes");
    }
    if line.contains("let (") || line.contains("let(") {
        return Some(LET_BLOCK);
    }
    if follows("catch", " if ") {
        return Some("conditional catch is not JavaScript: write catch (e) { if (...) { ... } else { throw e; } }");
    }
    if line.contains("yield") {
        return Some("a generator is written with an asterisk: function* (...) { yield ...; }");
    }
    let is_closure = line.contains("function") && !line.contains('{');
    is_closure.then_some("a function without braces is not JavaScript: write function (x) { return ...; }")
}

const LET_BLOCK: &str = "let blocks are not JavaScript: write { let name = value; ... }";

/// Names that scripts of Celos take from Java, with their replacements.
const INSTEAD: [(&str, &str); 28] = [
    ("AlwaysTrigger", "celos.alwaysTrigger()"),
    ("AndTrigger", "celos.andTrigger(...)"),
    ("OrTrigger", "celos.orTrigger(...)"),
    ("NotTrigger", "celos.notTrigger(trigger)"),
    ("OffsetTrigger", "celos.offsetTrigger(seconds, trigger)"),
    ("DelayTrigger", "celos.delayTrigger(seconds)"),
    ("SuccessTrigger", "celos.successTrigger(workflowID)"),
    ("HDFSCheckTrigger", "celos.hdfsCheckTrigger(path, fs)"),
    ("CronSchedule", "celos.cronSchedule(expression)"),
    ("HourlySchedule", "celos.hourlySchedule()"),
    ("MinutelySchedule", "celos.minutelySchedule()"),
    ("DependentSchedule", "celos.dependentSchedule(workflowID)"),
    ("SerialSchedulingStrategy", "celos.serialSchedulingStrategy(concurrency)"),
    ("TrivialSchedulingStrategy", "celos.serialSchedulingStrategy(1000)"),
    ("OozieExternalService", "celos.oozieExternalService(properties, url)"),
    ("PropertiesGenerator", "celos.makePropertiesGen(properties)"),
    ("Workflow", "celos.defineWorkflow({...})"),
    ("WorkflowInfo", "the fields url and contacts of celos.defineWorkflow"),
    ("RegisterKey", "celos.getRegister(bucket, key)"),
    ("BucketID", "celos.getRegister(bucket, key)"),
    ("celosConnection", "celos.getRegister(bucket, key), and the HTTP API for what is written"),
    ("celosReader", "JSON.parse(text)"),
    ("celosScope", "importDefaults(name)"),
    ("celosWorkflowConfigurationParser", "celos.defineWorkflow({...})"),
    ("XML", "the text of the XML in quotes: E4X is not JavaScript"),
    ("XMLList", "the text of the XML in quotes: E4X is not JavaScript"),
    ("Iterator", "for (const [key, value] of Object.entries(object))"),
    ("StopIteration", "a generator, function* (...) { yield ...; }, which ends by itself"),
];

/// Hints for uses of Java, by a part of the line.
const JAVA_INSTEAD: [(&str, &str); 7] = [
    ("com.collective.celos", "use the functions of celos, ScheduledTime, SlotID and WorkflowID"),
    ("java.util.Date", "use ScheduledTime.now() or Date"),
    ("Calendar", "use ScheduledTime.now() or Date"),
    ("java.util.", "use arrays, objects, Map and Set"),
    ("java.lang.System", "write settings into a file of the defaults folder"),
    ("java.lang.", "use JavaScript's own String, Number and Math"),
    ("joda", "use ScheduledTime, and its getDateTime() where a pattern is needed"),
];

fn java(name: &str, line: &str) -> String {
    let import = ["importPackage", "importClass", "JavaImporter"].contains(&name);
    let known = JAVA_INSTEAD.iter().find(|(part, _)| line.contains(part)).map(|(_, instead)| *instead);
    let instead = match known {
        _ if import => "remove the line: ScheduledTime, SlotID, WorkflowID and celos are there without it",
        Some(instead) => instead,
        None => "use JavaScript's own objects, and the functions of celos",
    };
    format!("Java classes are not available to scripts: {instead}")
}

fn unknown_name(name: &str, line: &str) -> Option<String> {
    if JAVA.contains(&name) {
        return Some(java(name, line));
    }
    if name == "let" {
        return Some(LET_BLOCK.to_owned());
    }
    if let Some((_, instead)) = INSTEAD.iter().find(|(known, _)| *known == name) {
        return Some(format!("write {instead}"));
    }
    if ABSENT.contains(&name) {
        return Some("scripts have no access to files, programs, the network or a console".to_owned());
    }
    if UNPREFIXED.contains(&name) {
        return Some(format!("did you mean celos.{name}?"));
    }
    closest(name, GLOBALS).map(|close| format!("did you mean {close}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frames_of_scripts_count() {
        let stack = "    at refuse (kelos:prelude:12:3)\n    at hdfsCheckTrigger (kelos:prelude:90:1)\n    \
                     at define (a b.js:3:7)\n    at <eval> (a b.js:10:1)\n    at apply (native)\n";
        let found = places(stack);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], SourcePosition { file: "a b.js".into(), line: 3, column: 7 });
        assert_eq!(places("    at syntax.js:4:5\n")[0].line, 4);
    }
}
