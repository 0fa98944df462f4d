// Programs and event schedules: what triggers them, and what must hold besides. A part of one module with prelude.js; it
// stands before prelude_workflow.js, which hands it out.

const ProgramType = Object.freeze({
    WORKFLOW: "WORKFLOW", SPARK: "SPARK", MAPREDUCE: "MAPREDUCE", SERVICE: "SERVICE", WORKER: "WORKER", FLOW: "FLOW",
});
const ProgramStatus = Object.freeze({
    COMPLETED: "COMPLETED", FAILED: "FAILED", KILLED: "KILLED", INITIALIZING: "INITIALIZING", RUNNING: "RUNNING",
});
const TimeUnit = Object.freeze({
    MILLISECONDS: "MILLISECONDS", SECONDS: "SECONDS", MINUTES: "MINUTES", HOURS: "HOURS", DAYS: "DAYS",
});
const UNIT_MILLIS = { MILLISECONDS: 1, SECONDS: 1000, MINUTES: 60000, HOURS: 3600000, DAYS: 86400000 };
/** Ends of runs, by the names that people give them. */
const ENDS = { COMPLETED: "succeeded", SUCCEEDED: "succeeded", FAILED: "failed", KILLED: "killed" };

const upper = (value) => (typeof value === "string" ? value.toUpperCase() : value);
const isType = (value) => Object.hasOwn(ProgramType, String(upper(value)));
const isStatus = (value) => Object.hasOwn(ENDS, String(upper(value))) || Object.hasOwn(ProgramStatus, String(upper(value)));

/** What the host answers with: a text, or the code and the words of a problem. */
function told([answer, problem], where) {
    if (problem !== undefined) refuse(`${where}: ${problem}`, answer);
    return answer;
}

function millis(amount, unit, where, example) {
    const each = UNIT_MILLIS[upper(unit)];
    if (each === undefined) {
        refuse(`${where}: expected a unit such as TimeUnit.MINUTES, as in ${example}, not ${describe(unit)}`);
    }
    const most = Math.floor(Number.MAX_SAFE_INTEGER / 86400000);
    return count(amount, where, 1, most) * each;
}

// --- maps ---

function mapOf(pairs, where) {
    if (pairs.length % 2 !== 0) refuse(`${where}: expected keys and values in turn, not ${pairs.length} arguments`);
    const map = {};
    for (let n = 0; n < pairs.length; n += 2) {
        const key = text(pairs[n], `${where}: argument ${n + 1}`, "key");
        if (Object.hasOwn(map, key)) refuse(`${where}: the key ${quote(key)} is there twice`, "conflicting-options");
        map[key] = pairs[n + 1];
    }
    return map;
}

/** Maps as they are written in Java: an object does as well. */
const ImmutableMap = Object.freeze({
    of: (...pairs) => mapOf(pairs, "ImmutableMap.of"),
    builder() {
        const pairs = [];
        const builder = { put: (key, value) => (pairs.push(key, value), builder), build: () => mapOf(pairs, "ImmutableMap.builder") };
        return builder;
    },
});

/** Zones as they are written in Java: a name does as well. */
const TimeZone = Object.freeze({ getTimeZone: (id) => text(id, "TimeZone.getTimeZone", "Europe/Berlin") });

/** Properties as texts; what is no text becomes JSON. */
function argumentTexts(given, where) {
    const texts = {};
    object(given, where, 'an object such as {"triggered.by": "data"}');
    for (const name of Object.keys(given)) {
        const value = given[name];
        if (value === undefined || value === null) continue;
        const isData = typeof value === "object" && !ScheduledTime.is(value) && !SlotID.is(value);
        texts[name] = isData ? JSON.stringify(jsonOf(value, `${where}.${name}`)) : propertyText(value, `${where}.${name}`);
    }
    return texts;
}

// --- triggers of facts ---

/** A trigger of the times of a cron expression. */
function firedTrigger(maker, cron, zone) {
    const where = `celos.${maker}`;
    text(cron, `${where}: cron`, "0 4 * * *");
    const named = zone === undefined ? {} : { zone: zoneName(zone, `${where}: zone`) };
    agreed(host.firing(cron), where, "bad-cron");
    return new Made("trigger", maker, { type: "fired", cron, ...named });
}

function zoneName(zone, where) {
    agreed(host.zone(text(zone, where, "Europe/Berlin")), where, "unknown-zone");
    return zone;
}

function partitionsTrigger(dataset, partitions = 1) {
    const where = "celos.partitionsTrigger";
    return newPartitions("partitionsTrigger", where, undefined, dataset, partitions);
}

function newPartitions(maker, where, namespace, dataset, partitions) {
    text(dataset, `${where}: dataset`, "purchases");
    if (namespace !== undefined) text(namespace, `${where}: namespace`, "default");
    const named = host.dataset(namespace, dataset);
    const wanted = count(partitions, `${where}: number of partitions`, 1);
    return new Made("trigger", maker, { type: "partitions", dataset: named, count: wanted });
}

/** `[namespace,] dataset, numPartitions`. */
function onPartitions(where, given) {
    if (given.length < 2 || given.length > 3) {
        refuse(`${where}: expected a dataset and a number, as in ${where}("purchases", 4), or a namespace before them`);
    }
    const [namespace, dataset, partitions] = given.length === 3 ? given : [undefined, ...given];
    return newPartitions("partitionsTrigger", where, namespace, dataset, partitions);
}

function statesOf(statuses, where) {
    const states = statuses.flat().map((status) => {
        const state = ENDS[upper(status)];
        if (state !== undefined) return state;
        const running = isStatus(status) ? " (a trigger waits for the end of a run)" : "";
        refuse(`${where}: expected ProgramStatus.COMPLETED, ProgramStatus.FAILED or ProgramStatus.KILLED, not ${describe(status)}${running}`);
    });
    return [...new Set(states)];
}

function programStatusTrigger(program, ...statuses) {
    const where = "celos.programStatusTrigger";
    if (statuses.flat().length === 0) refuse(`${where}: expected at least one status, such as ProgramStatus.COMPLETED`);
    const named = workflowId(program, `${where}: program`);
    return new Made("trigger", "programStatusTrigger", { type: "ended", program: named, states: statesOf(statuses, where) });
}

/** `[[namespace,] application, [version,]] type, program[, statuses…]`; without a status, when it fails. */
function onProgramStatus(where, given) {
    const usage = `${where}(ProgramType.WORKFLOW, "Loader", ProgramStatus.COMPLETED)`;
    const parts = [...given];
    const statuses = [];
    while (parts.length > 2 && (Array.isArray(parts.at(-1)) || isStatus(parts.at(-1)))) statuses.unshift(parts.pop());
    const [type, name] = parts.slice(-2);
    if (parts.length < 2 || parts.length > 5 || !isType(type)) {
        const wrong = parts.length > 2 && isType(parts.at(-3)) ? `, not ${describe(parts.at(-1))} as a status` : "";
        refuse(`${where}: expected a type, a program and statuses, as in ${usage}, and before them an application, ` +
            `a namespace and an application, or these and a version${wrong}`);
    }
    const owner = parts.slice(0, -2).map((part, n) => text(part, `${where}: argument ${n + 1}`, "Purchase"));
    const [namespace, application, version] = owner.length === 1 ? [undefined, owner[0]] : owner;
    const kind = upper(type) === ProgramType.WORKFLOW ? undefined : type.toLowerCase();
    text(name, `${where}: program`, "Loader");
    const program = told(host.program(namespace, application, version, kind, name), where);
    const states = statuses.flat().length === 0 ? ["failed"] : statesOf(statuses, where);
    return new Made("trigger", "programStatusTrigger", { type: "ended", program, states });
}

function signalTrigger(name) {
    return new Made("trigger", "signalTrigger", { type: "signal", name: text(name, "celos.signalTrigger: name", "go") });
}

const triggerFactory = Object.freeze({
    byTime: (cron) => firedTrigger("cronTrigger", cron),
    onPartitions: (...given) => onPartitions("getTriggerFactory().onPartitions", given),
    onProgramStatus: (...given) => onProgramStatus("getTriggerFactory().onProgramStatus", given),
    and: (...triggers) => someOf("andTrigger", "and", triggers),
    or: (...triggers) => someOf("orTrigger", "or", triggers),
});

function someOf(maker, type, triggers) {
    if (triggers.length === 0) refuse(`getTriggerFactory().${type}: expected at least one trigger`);
    return combined(maker, type, triggers);
}

/** A trigger whose cron times are of a zone, where they name none. */
function zoned(tree, zone) {
    if (zone === undefined) return tree;
    if (tree.type === "fired") return { zone, ...tree };
    if (Array.isArray(tree.triggers)) return { ...tree, triggers: tree.triggers.map((one) => zoned(one, zone)) };
    return tree.trigger === undefined ? tree : { ...tree, trigger: zoned(tree.trigger, zone) };
}

// --- constraints ---

/** What must hold besides the trigger, and what happens where it does not. */
class RunConstraint extends Made {
    waitUntilMet() {
        return gated(Made.tree("constraint", this, "waitUntilMet"), "wait", "waitUntilMet");
    }

    abortIfNotMet() {
        return gated(Made.tree("constraint", this, "abortIfNotMet"), "abort", "abortIfNotMet");
    }
}

function gated(tree, otherwise, where) {
    return constraintOf("constraint", { ...tree, otherwise }, where);
}

function constraintOf(maker, tree, where) {
    agreed(host.constraint(JSON.stringify(tree)), where);
    return new RunConstraint("constraint", maker, tree);
}

function concurrency(runs, where = "celos.concurrency") {
    return constraintOf("concurrency", { type: "concurrency", limit: count(runs, where) }, where);
}

function delay(amount, unit, where = "celos.delay") {
    return constraintOf("delay", { type: "delay", millis: millis(amount, unit, where, "(15, TimeUnit.MINUTES)") }, where);
}

function sinceLastRun(amount, unit, where = "celos.sinceLastRun") {
    return constraintOf("sinceLastRun", { type: "since-last-run", millis: millis(amount, unit, where, "(6, TimeUnit.HOURS)") }, where);
}

function timeWindow(start, end, zone, where = "celos.timeWindow") {
    const window = { type: "window", from: text(start, `${where}: start`, "22:00"), to: text(end, `${where}: end`, "06:00") };
    if (zone !== undefined) window.zone = zoneName(zone, `${where}: zone`);
    return constraintOf("timeWindow", window, where);
}

/** Constraints as data; windows are of the zone, where they name none. */
function constraintsOf(given, where, zone) {
    if (given === undefined || given === null) return [];
    if (!Array.isArray(given)) refuse(`${where}: expected an array such as [celos.concurrency(1)], not ${describe(given)}`);
    return given.map((one, n) => windowZoned(Made.tree("constraint", one, `${where}[${n}]`), zone));
}

function windowZoned(tree, zone) {
    return zone === undefined || tree.type !== "window" ? tree : { zone, ...tree };
}

/** A deadline: a length of time, or a time of the day, of the zone where it names none. */
function deadlineOf(value, where, zone = "UTC") {
    if (value === undefined || value === null) return undefined;
    let deadline = value;
    if (typeof value === "object" && !Array.isArray(value)) {
        known(value, ["at", "zone", "days", "businessDays", "holidays"], where);
        deadline = { zone, ...value };
        if (value.holidays !== undefined) deadline.holidays = datesOf(value.holidays, `${where}: holidays`);
    } else if (typeof value !== "string") {
        refuse(`${where}: expected a length of time such as "2h", or {at: "07:30", zone: "Europe/Berlin"}, not ${describe(value)}`);
    }
    agreed(host.deadline(JSON.stringify(deadline)), where);
    return deadline;
}

// --- applications and programs ---

const UPDATES = "app.deploy.update.schedules";

/** Which project the file is. */
function application(options) {
    const where = "celos.application";
    const given = object(options, where, 'an object such as {name: "Purchase"}');
    known(given, ["namespace", "name", "version", UPDATES], where);
    const parts = {};
    for (const field of ["namespace", "name", "version"]) {
        if (given[field] !== undefined) parts[field] = text(given[field], `${where}: ${field}`);
    }
    if (given[UPDATES] !== undefined) {
        parts.updateSchedules = among(String(given[UPDATES]), `${where}: ${UPDATES}`, ["true", "false"]) === "true";
    }
    agreed(host.application(JSON.stringify(parts)), where);
}

const PROGRAM_FIELDS = ["kind", "description", "retry", "maxRetryCount", "pools", "parameters", "runsOn", "onLost"];

/** A job that people start, and schedules run; gives its name. */
function program(name, job, options = {}) {
    text(name, "celos.program: name", "PurchaseHistoryWorkflow");
    const where = `celos.program ${quote(name)}`;
    known(object(options, `${where}: options`, 'an object such as {description: "..."}'), PROGRAM_FIELDS, where);
    const work = withWorkers(Made.tree("external service", job, `${where}: job`), options, where);
    const draft = {
        name,
        job: work,
        kind: kindOf(options.kind, `${where}: kind`),
        // As in CDAP, a program that did not complete has failed.
        retry: withUnknown(retryOf(options, where), work, "retry", where),
        pools: poolsOf(options.pools, `${where}: pools`),
        parameters: parametersOf(options.parameters, `${where}: parameters`),
        about: aboutOf(options, where),
    };
    agreed(host.defineProgram(JSON.stringify(draft), here()), where);
    return name;
}

function kindOf(kind, where) {
    if (kind === undefined || upper(kind) === ProgramType.WORKFLOW) return undefined;
    if (!isType(kind)) refuse(`${where}: expected a type such as ProgramType.SPARK, not ${describe(kind)}`);
    return kind.toLowerCase();
}

// --- schedules ---

/** How far a schedule is that a script describes. */
const BUILT = 1;
const TAKEN = 2;

/** What a schedule has that is whole: no more can be said of it. */
class Built {
    #draft;
    #number;
    #stack;

    constructor(draft, number, stack) {
        this.#draft = draft;
        this.#number = number;
        this.#stack = stack;
    }

    static is(value) {
        return value !== null && typeof value === "object" && #draft in value;
    }

    static take(built) {
        const name = built.#draft.name;
        spot = built.#stack;
        try {
            agreed(host.defineSchedule(JSON.stringify(built.#draft), built.#stack), `schedule ${quote(name)}`);
        } finally {
            spot = undefined;
        }
        host.proceed(built.#number, TAKEN);
    }
}

/** Says one thing after the other about a schedule; its trigger comes last. */
class ScheduleBuilder {
    #draft;
    #constraints = [];
    #zone;
    #number;
    #stack;
    #alone;

    constructor(name, program, alone) {
        this.#draft = { name, program, properties: {}, about: {} };
        this.#alone = alone;
        this.#stack = here();
        const began = told(host.begin(name, this.#stack), `schedule ${quote(name)}`);
        this.#number = Number(began);
    }

    static is(value) {
        return value !== null && typeof value === "object" && #draft in value;
    }

    static name(builder) {
        return builder.#draft.name;
    }

    #where(verb) {
        return `schedule ${quote(this.#draft.name)}: ${verb}`;
    }

    #with(constraint) {
        this.#constraints.push(constraint);
        return this;
    }

    #gate(verb, otherwise) {
        const last = this.#constraints.pop();
        if (last === undefined) {
            refuse(`${this.#where(verb)}: there is no constraint that it could be about: expected one before it, such as withConcurrency(1)`);
        }
        return this.#with(gated(Made.tree("constraint", last, verb), otherwise, this.#where(verb)));
    }

    #end(tree) {
        const constraints = constraintsOf(this.#constraints, this.#where("constraints"), this.#zone);
        const built = new Built({ ...this.#draft, constraints, trigger: zoned(tree, this.#zone) }, this.#number, this.#stack);
        host.proceed(this.#number, BUILT);
        if (this.#alone) Built.take(built);
        return built;
    }

    setDescription(description) {
        this.#draft.about = { description: text(description, this.#where("setDescription")) };
        return this;
    }

    withDescription(description) {
        return this.setDescription(description);
    }

    setProperties(properties) {
        this.#draft.properties = argumentTexts(properties, this.#where("setProperties"));
        return this;
    }

    withProperties(properties) {
        return this.setProperties(properties);
    }

    setTimeout(amount, unit) {
        this.#draft.timeoutMillis = millis(amount, unit, this.#where("setTimeout"), "setTimeout(1, TimeUnit.DAYS)");
        return this;
    }

    withDeadline(deadline) {
        this.#draft.deadline = deadlineOf(deadline, this.#where("withDeadline"), this.#zone);
        return this;
    }

    withConcurrency(runs) {
        return this.#with(concurrency(runs, this.#where("withConcurrency")));
    }

    withDelay(amount, unit) {
        return this.#with(delay(amount, unit, this.#where("withDelay")));
    }

    withTimeWindow(start, end, zone) {
        return this.#with(timeWindow(start, end, zone, this.#where("withTimeWindow")));
    }

    withDurationSinceLastRun(amount, unit) {
        return this.#with(sinceLastRun(amount, unit, this.#where("withDurationSinceLastRun")));
    }

    waitUntilMet() {
        return this.#gate("waitUntilMet", "wait");
    }

    abortIfNotMet() {
        return this.#gate("abortIfNotMet", "abort");
    }

    timeZone(zone) {
        this.#zone = zoneName(zone, this.#where("timeZone"));
        return this;
    }

    startTime(time) {
        this.#draft.startTime = startTimeOf(time, this.#where("startTime"));
        return this;
    }

    endTime(time) {
        this.#draft.endTime = startTimeOf(time, this.#where("endTime"));
        return this;
    }

    jitter(amount, unit) {
        this.#draft.jitterMillis = millis(amount, unit, this.#where("jitter"), "jitter(5, TimeUnit.MINUTES)");
        return this;
    }

    catchUp(policy) {
        this.#draft.catchUp = among(policy, this.#where("catchUp"), ["skip", "latest", "all"]);
        return this;
    }

    enabled(on = true) {
        this.#draft.enabled = among(on, this.#where("enabled"), [true, false]);
        return this;
    }

    triggerByTime(cron) {
        const where = this.#where("triggerByTime");
        agreed(host.firing(text(cron, where, "0 4 * * *")), where, "bad-cron");
        return this.#end({ type: "fired", cron });
    }

    triggerOnPartitions(...given) {
        return this.triggerOn(onPartitions("triggerOnPartitions", given));
    }

    triggerOnProgramStatus(...given) {
        return this.triggerOn(onProgramStatus("triggerOnProgramStatus", given));
    }

    triggerOn(trigger) {
        return this.#end(Made.tree("trigger", trigger, this.#where("triggerOn")));
    }
}

const TRIGGERS = ["triggerByTime", "triggerOnPartitions", "triggerOnProgramStatus", "triggerOn"];

// Whoever says more after the trigger is told where to say it.
for (const verb of Object.getOwnPropertyNames(ScheduleBuilder.prototype)) {
    if (verb === "constructor") continue;
    Built.prototype[verb] = () => refuse(TRIGGERS.includes(verb) ? `${verb}: the schedule has a trigger already: combine triggers by getTriggerFactory().and or .or`
        : `${verb}: expected before the trigger, which ends a schedule`, "conflicting-options");
}

function targetOf(type, name, where) {
    if (!isType(type)) refuse(`${where}: expected ProgramType.WORKFLOW, not ${describe(type)}`);
    if (upper(type) !== ProgramType.WORKFLOW) refuse(`${where}: only workflows can be scheduled: expected ProgramType.WORKFLOW, not ${describe(type)}`);
    return text(name, `${where}: program`, "PurchaseHistoryWorkflow");
}

function buildSchedule(name, type, program) {
    text(name, "buildSchedule: name", "DailySchedule");
    return new ScheduleBuilder(name, targetOf(type, program, `buildSchedule ${quote(name)}`), false);
}

/** Takes in what a builder made; or begins a schedule that is taken in at its trigger. */
function schedule(made, type, program) {
    if (Built.is(made)) return Built.take(made);
    if (ScheduleBuilder.is(made)) {
        refuse(`schedule ${quote(ScheduleBuilder.name(made))} has no trigger: expected ${TRIGGERS.join(", ")} at its end`, "missing-option");
    }
    const usage = 'schedule(buildSchedule("DailySchedule", ProgramType.WORKFLOW, "PurchaseHistoryWorkflow")...), or schedule("DailySchedule", "PurchaseHistoryWorkflow")...';
    if (typeof made !== "string" || made === "") refuse(`schedule: expected ${usage}, not ${describe(made)}`);
    const target = program === undefined ? text(type, `schedule ${quote(made)}: program`, "PurchaseHistoryWorkflow")
        : targetOf(type, program, `schedule ${quote(made)}`);
    return new ScheduleBuilder(made, target, true);
}

/** A function that stands, for whoever reads a problem, where its call begins. */
function begun(fn) {
    return (...given) => {
        spot = host.same(looked, new Error().stack);
        looked = undefined;
        try {
            return fn(...given);
        } finally {
            spot = undefined;
        }
    };
}

/** What scripts may name without `celos.`, because the document of event schedules does. */
const eventApi = {
    application: begun(application),
    program: begun(program),
    schedule: begun(schedule),
    buildSchedule: begun(buildSchedule),
    getTriggerFactory: () => triggerFactory,
    ProgramType,
    ProgramStatus,
    TimeUnit,
    TimeZone,
    ImmutableMap,
};

const BEGUN = ["application", "program", "schedule", "buildSchedule"];

/** Names that a script may take for its own, as any other. */
function installEvents() {
    for (const name of Object.keys(eventApi)) {
        const own = (value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
        if (!BEGUN.includes(name)) {
            own(eventApi[name]);
            continue;
        }
        const get = () => {
            looked = new Error().stack;
            return eventApi[name];
        };
        Object.defineProperty(globalThis, name, { get, set: own, configurable: true });
    }
}
