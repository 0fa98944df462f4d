//! The table of constraints, which the parser, the printer, both directions of JSON, the description of the HTTP API and the
//! documentation follow.

use super::call::{Call, Nests, Parameter, ParameterType, Position, Signature, optional, parameter};
use super::error::FormError;
use super::notation::{Grammar, Notation, PartValue};
use crate::constraint::{Constraint, Gate, Otherwise};
use crate::time::{Window, Zone};

use PartValue::{Implied, Millis, Number, Text};

/// All kinds of constraints, in the order in which they are explained.
pub static CONSTRAINTS: [&Signature<Constraint>; 4] = [&CONCURRENCY, &WINDOW, &DELAY, &SINCE_LAST_RUN];

const WAIT: &str = "wait";
const ABORT: &str = "abort";

const OTHERWISE: Parameter = optional(
    "otherwise",
    ParameterType::OneOf(&[WAIT, ABORT]),
    Position::InOrder,
    "what happens to a slot while it is not met: `wait` or `abort`",
);
const MILLIS: Parameter = parameter("millis", ParameterType::Millis, "how long");

static CONCURRENCY: Signature<Constraint> = Signature {
    name: "concurrency",
    aliases: &[],
    json: "concurrency",
    usage: "concurrency(N, OTHERWISE)",
    example: "concurrency(1, wait)",
    meaning: "fewer than so many runs of the program are live; `abort` where nothing is said",
    parameters: &[parameter("limit", ParameterType::Number(u32::MAX as u64), "how many, from 1"), OTHERWISE],
    nests: Nests::Nothing,
    read: |call| {
        let limit = call.number("limit")?;
        constraint(call, Gate::Concurrency(call.required("limit", limit)?))
    },
};

static WINDOW: Signature<Constraint> = Signature {
    name: "window",
    aliases: &[],
    json: "window",
    usage: "window(FROM-TO @ ZONE, OTHERWISE)",
    example: "window(22:00-06:00 @ Europe/Berlin)",
    meaning: "the clock is between two times of the day; `wait` where nothing is said. Without a zone: in that of what it belongs to",
    parameters: &[
        parameter("from", ParameterType::Text, "the time at which it opens: `22:00`"),
        Parameter {
            position: Position::After('-'),
            ..parameter("to", ParameterType::Text, "the time at which it closes: `06:00`")
        },
        optional(
            "zone",
            ParameterType::Zone,
            Position::After('@'),
            "its zone; that of what it belongs to where not given",
        ),
        OTHERWISE,
    ],
    nests: Nests::Nothing,
    read: |call| {
        let (from, to) = (call.text("from")?, call.text("to")?);
        let window = Window::new(&from, &to, call.zone("zone")?).map_err(|error| call.wrong(error.to_string()))?;
        constraint(call, Gate::Window(window))
    },
};

static DELAY: Signature<Constraint> = Signature {
    name: "delay",
    aliases: &[],
    json: "delay",
    usage: "delay(DURATION)",
    example: "delay(15m)",
    meaning: "so much time has passed since the slot was created, which an event schedule does at the first fact; it can only wait",
    parameters: &[MILLIS, OTHERWISE],
    nests: Nests::Nothing,
    read: |call| constraint(call, Gate::Delay(call.millis("millis")?)),
};

static SINCE_LAST_RUN: Signature<Constraint> = Signature {
    name: "since-last-run",
    aliases: &[],
    json: "since-last-run",
    usage: "since-last-run(DURATION, OTHERWISE)",
    example: "since-last-run(6h)",
    meaning: "so much time has passed since the start of the program's last live or successful run; `abort` where nothing is said",
    parameters: &[MILLIS, OTHERWISE],
    nests: Nests::Nothing,
    read: |call| constraint(call, Gate::SinceLastRun(call.millis("millis")?)),
};

/// A gate, with the default of its kind where nothing is said of what happens otherwise.
fn constraint(call: &Call<'_, Constraint>, gate: Gate) -> Result<Constraint, FormError> {
    let by_default = Constraint::new(gate);
    let otherwise = match call.one_of("otherwise", &[WAIT, ABORT])? {
        Some(WAIT) => Otherwise::Wait,
        Some(_) => Otherwise::Abort,
        None => by_default.otherwise,
    };
    Ok(Constraint { otherwise, ..by_default })
}

impl Grammar for Constraint {
    const NOUN: &'static str = "constraint";
    const MORE: &'static str = "";

    fn signatures() -> &'static [&'static Signature<Constraint>] {
        &CONSTRAINTS
    }

    /// This is where a new kind of constraint gets its written form.
    fn notation(&self) -> Notation<'_, Constraint> {
        let (signature, mut values) = match &self.gate {
            Gate::Concurrency(limit) => (&CONCURRENCY, vec![("limit", Number(u64::from(*limit)))]),
            Gate::Delay(millis) => (&DELAY, vec![("millis", Millis(*millis))]),
            Gate::SinceLastRun(millis) => (&SINCE_LAST_RUN, vec![("millis", Millis(*millis))]),
            Gate::Window(window) => {
                let zone = window.zone();
                let named = if *zone == Zone::utc() { Implied(zone.name()) } else { Text(zone.name()) };
                (&WINDOW, vec![("from", Text(window.start())), ("to", Text(window.end())), ("zone", named)])
            }
        };
        let otherwise = match self.otherwise {
            Otherwise::Wait => WAIT,
            Otherwise::Abort => ABORT,
        };
        let is_default = self.otherwise == self.gate.by_default();
        values.push(("otherwise", if is_default { Implied(otherwise) } else { Text(otherwise) }));
        Notation { signature, values, nested: &[] }
    }
}
