//! The table of triggers, which the parser, the printer, both directions of JSON, the description of the HTTP API and the
//! documentation follow: what each kind is called and what it takes.

use super::call::{Call, Nests, Parameter, ParameterType, Position, Signature, optional, parameter};
use super::error::FormError;
use super::notation::{Grammar, Notation, PartValue};
use crate::facts::ENDS;
use crate::function::FunctionRef;
use crate::probe::Conditions;
use crate::project::dataset_named;
use crate::state::SlotState;
use crate::time::Zone;
use crate::trigger::{FileSystem, PathCheck, Trigger};

use PartValue::{Ends, Implied, Number, Seconds, Text};

const WORKFLOW: Parameter = parameter("workflow", ParameterType::Workflow, "the other workflow");
const SECONDS: Parameter = parameter("seconds", ParameterType::Seconds, "how long");

/// The file system of a path that names none, where nothing is said.
const LOCAL: &str = "file:///";

const PATH: [Parameter; 6] = [
    parameter("path", ParameterType::Text, "a template: `s3://logs/${year}`"),
    optional("base", ParameterType::Text, Position::Named, "the file system that a path without a scheme belongs to"),
    optional("glob", ParameterType::Text, Position::Condition, "files of the folder whose names match this"),
    optional(
        "minCount",
        ParameterType::Number(u32::MAX as u64),
        Position::Condition,
        "how many files must be there at least",
    ),
    optional("minBytes", ParameterType::Number(u64::MAX), Position::Condition, "how many bytes must be in it at least"),
    optional(
        "minAgeSeconds",
        ParameterType::Number(u32::MAX as u64),
        Position::Condition,
        "for how many seconds nothing must have been written to it",
    ),
];

/// All kinds of triggers, in the order in which they are explained.
pub static SIGNATURES: [&Signature; 17] = [
    &FIRED,
    &PARTITIONS,
    &ENDED,
    &SIGNAL,
    &SUCCESS,
    &COVERS,
    &JOB,
    &DELAY,
    &PATH_ANYWHERE,
    &HDFS_PATH,
    &LOCAL_PATH,
    &AND,
    &OR,
    &NOT,
    &OFFSET,
    &ALWAYS,
    &FUNCTION,
];

static ALWAYS: Signature = Signature {
    name: "always",
    aliases: &[],
    json: "always",
    usage: "always",
    example: "always",
    meaning: "always",
    parameters: &[],
    nests: Nests::Nothing,
    read: |_| Ok(Trigger::Always),
};

static AND: Signature = Signature {
    name: "and",
    aliases: &["all", "all-of"],
    json: "and",
    usage: "and(TRIGGER, ...)",
    example: "and(signal(a), signal(b))",
    meaning: "when all of them are",
    parameters: &[],
    nests: Nests::Any,
    read: |call| Ok(Trigger::And { triggers: call.nested() }),
};

static OR: Signature = Signature {
    name: "or",
    aliases: &["any", "any-of"],
    json: "or",
    usage: "or(TRIGGER, ...)",
    example: "or(signal(a), signal(b))",
    meaning: "when one of them is",
    parameters: &[],
    nests: Nests::Any,
    read: |call| Ok(Trigger::Or { triggers: call.nested() }),
};

static NOT: Signature = Signature {
    name: "not",
    aliases: &[],
    json: "not",
    usage: "not(TRIGGER)",
    example: "not(signal(stop))",
    meaning: "when the nested one isn't",
    parameters: &[],
    nests: Nests::One,
    read: |call| Ok(Trigger::Not { trigger: Box::new(call.only()?) }),
};

static OFFSET: Signature = Signature {
    name: "offset",
    aliases: &[],
    json: "offset",
    usage: "offset(DURATION, TRIGGER)",
    example: "offset(-1d, success(loader))",
    meaning: "when the nested one is, asked about the slot that is so much later, or earlier after a minus",
    parameters: &[SECONDS],
    nests: Nests::One,
    read: |call| Ok(Trigger::Offset { seconds: call.seconds("seconds")?, trigger: Box::new(call.only()?) }),
};

static DELAY: Signature = Signature {
    name: "delay",
    aliases: &[],
    json: "delay",
    usage: "delay(DURATION)",
    example: "delay(15m)",
    meaning: "once more than so much has passed since the slot's time: `90s`, `15m`, `36h`, `7d`, `2w`",
    parameters: &[SECONDS],
    nests: Nests::Nothing,
    read: |call| Ok(Trigger::Delay { seconds: call.seconds("seconds")? }),
};

static SUCCESS: Signature = Signature {
    name: "success",
    aliases: &[],
    json: "success",
    usage: "success(WORKFLOW)",
    example: "success(loader)",
    meaning: "when the slot of another workflow at the same time has succeeded",
    parameters: &[WORKFLOW],
    nests: Nests::Nothing,
    read: |call| Ok(Trigger::Success { workflow: call.workflow("workflow")? }),
};

static COVERS: Signature = Signature {
    name: "covers",
    aliases: &[],
    json: "covers",
    usage: "covers(WORKFLOW, from=DURATION, to=DURATION)",
    example: "covers(hourly, from=-1h)",
    meaning: "when each slot of another workflow whose period intersects its own has succeeded: the hours of a day, the day of an \
              hour. `from` shifts the start of its own period, `to` the end; on itself only earlier slots count",
    parameters: &[
        WORKFLOW,
        optional("from", ParameterType::Seconds, Position::Named, "how much later than its own period they begin"),
        optional("to", ParameterType::Seconds, Position::Named, "how much later than its own period they end"),
    ],
    nests: Nests::Nothing,
    read: |call| {
        let (from, to) = (call.optional_seconds("from")?, call.optional_seconds("to")?);
        Ok(Trigger::Covers { workflow: call.workflow("workflow")?, from: from.unwrap_or(0), to: to.unwrap_or(0) })
    },
};

static JOB: Signature = Signature {
    name: "job",
    aliases: &[],
    json: "job",
    usage: "job(WORKFLOW, JOB)",
    example: "job(extract, ${year}${month}${day}_1)",
    meaning: "when a job has succeeded; its job id may have variables of the slot in it",
    parameters: &[WORKFLOW, parameter("job", ParameterType::Text, "a template of its job id")],
    nests: Nests::Nothing,
    read: |call| Ok(Trigger::Job { workflow: call.workflow("workflow")?, job: call.text("job")? }),
};

static PATH_ANYWHERE: Signature = Signature {
    name: "path",
    aliases: &[],
    json: "path",
    usage: "path(URI, base=URI, glob=PATTERN, minCount=N, minBytes=N, minAgeSeconds=N)",
    example: "path(s3://logs/${year}, glob=*.csv, minCount=3)",
    meaning: "when something is at a path, and is as the conditions say; all but the path may be left out",
    parameters: &PATH,
    nests: Nests::Nothing,
    read: |call| read_path(call, FileSystem::Any),
};

static HDFS_PATH: Signature = Signature {
    name: "hdfs-path",
    json: "hdfs-path",
    usage: "hdfs-path(PATH, base=URI, ...)",
    example: "hdfs-path(/logs/${year}, base=hdfs://nameservice1)",
    meaning: "as `path`, as Hadoop reads paths",
    read: |call| read_path(call, FileSystem::Hdfs),
    ..PATH_ANYWHERE
};

static LOCAL_PATH: Signature = Signature {
    name: "local-path",
    json: "local-path",
    usage: "local-path(PATH, ...)",
    example: "local-path(/data/${year}, minAgeSeconds=60)",
    meaning: "as `path`, on the server's own disk",
    read: |call| read_path(call, FileSystem::Local),
    ..PATH_ANYWHERE
};

static PARTITIONS: Signature = Signature {
    name: "partitions",
    aliases: &["partition"],
    json: "partitions",
    usage: "partitions(DATASET, N)",
    example: "partitions(purchases, 4)",
    meaning: "once so many new partitions of a dataset have come, 1 where no number is given",
    parameters: &[
        parameter("dataset", ParameterType::Text, "the dataset: `purchases`, or `prod:purchases` in a namespace"),
        optional("count", ParameterType::Number(u32::MAX as u64), Position::InOrder, "how many; 1 where not given"),
    ],
    nests: Nests::Nothing,
    read: |call| {
        let dataset = dataset_named(&call.text("dataset")?).into();
        Ok(Trigger::Partitions { dataset, count: call.number("count")?.unwrap_or(1) })
    },
};

static ENDED: Signature = Signature {
    name: "ended",
    aliases: &["program-status"],
    json: "ended",
    usage: "ended(PROGRAM, STATE, ...)",
    example: "ended(Sales.Report, succeeded, killed)",
    meaning: "when a run of a program ends so: `succeeded` (or `completed`), `failed`, `killed`; in any way where none is given",
    parameters: &[
        parameter("workflow", ParameterType::Workflow, "whose run"),
        optional(
            "states",
            ParameterType::Ends,
            Position::InOrder,
            "how: `succeeded`, `failed`, `killed`; any where not given",
        ),
    ],
    nests: Nests::Nothing,
    read: |call| Ok(Trigger::Ended { program: call.workflow("workflow")?, states: ends_or_all(call.ends("states")?) }),
};

static FIRED: Signature = Signature {
    name: "time",
    aliases: &["cron"],
    json: "fired",
    usage: "time(CRON @ ZONE)",
    example: "time(0 4 * * * @ Europe/Berlin)",
    meaning: "when a time of a cron expression passes: five fields as in a crontab, or six as in Quartz, with the second \
              first. Without a zone: in that of what it belongs to",
    parameters: &[
        parameter(
            "cron",
            ParameterType::Cron,
            "an expression of five fields as in a crontab, or six as in Quartz, with the second first",
        ),
        optional(
            "zone",
            ParameterType::Zone,
            Position::After('@'),
            "its zone; that of what it belongs to where not given",
        ),
    ],
    nests: Nests::Nothing,
    read: |call| Ok(Trigger::Fired { firing: call.firing()? }),
};

static SIGNAL: Signature = Signature {
    name: "signal",
    aliases: &[],
    json: "signal",
    usage: "signal(NAME)",
    example: "signal(go)",
    meaning: "when somebody gives a signal",
    parameters: &[parameter("signal", ParameterType::Text, "its name")],
    nests: Nests::Nothing,
    read: |call| Ok(Trigger::Signal { name: call.text("signal")?.into() }),
};

static FUNCTION: Signature = Signature {
    name: "function",
    aliases: &[],
    json: "function",
    usage: "function(FILE, INDEX, DIGEST)",
    example: "function(workflows/a.js, 0, 9f86d081884c7d65)",
    meaning: "when a function of a script says so; only the script itself can ask it",
    parameters: &[
        parameter("file", ParameterType::Text, "the file that defined it"),
        parameter("index", ParameterType::Number(u32::MAX as u64), "its place among the functions of the file, from 0"),
        parameter("digest", ParameterType::Text, "a digest of its source"),
    ],
    nests: Nests::Nothing,
    read: |call| {
        let index = call.number("index")?;
        let index = call.required("index", index)?;
        Ok(Trigger::Function {
            function: FunctionRef { file: call.text("file")?, index, digest: call.text("digest")? },
        })
    },
};

fn read_path(call: &Call<'_, Trigger>, system: FileSystem) -> Result<Trigger, FormError> {
    let conditions = Conditions {
        glob: call.optional_text("glob")?,
        min_count: call.number("minCount")?,
        min_bytes: call.number("minBytes")?,
        min_age_seconds: call.number("minAgeSeconds")?,
    };
    let base = call.optional_text("base")?.unwrap_or_else(|| LOCAL.to_owned());
    Ok(Trigger::Path(PathCheck { system, path: call.text("path")?, base, conditions }))
}

fn ends_or_all(states: Vec<SlotState>) -> Vec<SlotState> {
    if states.is_empty() { ENDS.to_vec() } else { states }
}

impl Grammar for Trigger {
    const NOUN: &'static str = "trigger";
    const MORE: &'static str = ", or and(...) or or(...) around both";

    fn signatures() -> &'static [&'static Signature] {
        &SIGNATURES
    }

    /// This is where a new kind of trigger gets its written form.
    fn notation(&self) -> Notation<'_, Trigger> {
        let (signature, values) = match self {
            Trigger::Always => (&ALWAYS, Vec::new()),
            Trigger::And { .. } => (&AND, Vec::new()),
            Trigger::Or { .. } => (&OR, Vec::new()),
            Trigger::Not { .. } => (&NOT, Vec::new()),
            Trigger::Offset { seconds, .. } => (&OFFSET, vec![("seconds", Seconds(*seconds))]),
            Trigger::Delay { seconds } => (&DELAY, vec![("seconds", Seconds(*seconds))]),
            Trigger::Success { workflow } => (&SUCCESS, vec![("workflow", Text(workflow.as_str()))]),
            Trigger::Covers { workflow, from, to } => {
                let shifts = [("from", *from), ("to", *to)].into_iter().filter(|(_, seconds)| *seconds != 0);
                let shifts = shifts.map(|(name, seconds)| (name, Seconds(seconds)));
                (&COVERS, std::iter::once(("workflow", Text(workflow.as_str()))).chain(shifts).collect())
            }
            Trigger::Job { workflow, job } => (&JOB, vec![("workflow", Text(workflow.as_str())), ("job", Text(job))]),
            Trigger::Path(check) => path(check),
            Trigger::Partitions { dataset, count } => {
                (&PARTITIONS, vec![("dataset", Text(dataset)), ("count", Number(u64::from(*count)))])
            }
            Trigger::Ended { program, states } => {
                (&ENDED, vec![("workflow", Text(program.as_str())), ("states", Ends(states))])
            }
            Trigger::Fired { firing } => {
                let zone = firing.zone();
                let named = if *zone == Zone::utc() { Implied(zone.name()) } else { Text(zone.name()) };
                (&FIRED, vec![("cron", Text(firing.plain_text())), ("zone", named)])
            }
            Trigger::Signal { name } => (&SIGNAL, vec![("signal", Text(name))]),
            Trigger::Function { function } => {
                let index = Number(u64::from(function.index));
                (&FUNCTION, vec![("file", Text(&function.file)), ("index", index), ("digest", Text(&function.digest))])
            }
        };
        Notation { signature, values, nested: self.nested() }
    }
}

fn path(check: &PathCheck) -> (&'static Signature, Vec<(&'static str, PartValue<'_>)>) {
    let signature = match check.system {
        FileSystem::Any => &PATH_ANYWHERE,
        FileSystem::Hdfs => &HDFS_PATH,
        FileSystem::Local => &LOCAL_PATH,
    };
    let base = if check.base == LOCAL { Implied(LOCAL) } else { Text(&check.base) };
    let conditions = &check.conditions;
    let number = |name, number: Option<u64>| number.map(|number| (name, Number(number)));
    let glob = conditions.glob.as_deref().map(|glob| ("glob", Text(glob)));
    let values = [("path", Text(&check.path)), ("base", base)].into_iter();
    let conditions = [
        glob,
        number("minCount", conditions.min_count.map(u64::from)),
        number("minBytes", conditions.min_bytes),
        number("minAgeSeconds", conditions.min_age_seconds.map(u64::from)),
    ];
    (signature, values.chain(conditions.into_iter().flatten()).collect())
}
