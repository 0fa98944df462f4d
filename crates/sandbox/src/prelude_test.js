// The world of test files: `kelos.test` turns what people write into plain data, or refuses it. Joined to the
// module of prelude.js for test files alone. Unlike in workflows, a field that nobody knows is refused: an
// expectation with a typo would be one that always holds.

/** Functions of tests, by index: { fn, kind, where }. */
const fakes = [];

function lend(fn, kind, where) {
    if (Object.prototype.toString.call(fn) === "[object AsyncFunction]") {
        refuse(`${where}: expected a plain function, not an async one: its answer is needed at once`);
    }
    fakes.push({ fn, kind, where });
    return fakes.length - 1;
}

function only(options, fields, where) {
    for (const field of Object.keys(options)) {
        if (fields.includes(field)) continue;
        const close = host.closest(field, fields);
        refuse(`${where}: unknown field '${field}'; ${close ? `did you mean '${close}'?` : `known fields: ${fields.join(", ")}`}`, "unknown-option");
    }
    return options;
}

function list(value, where, example) {
    if (!Array.isArray(value)) refuse(`${where}: expected an array such as ${example}, not ${describe(value)}`);
    return value;
}

const written = (ms) => new RealDate(ms).toISOString();

/** A moment, as text. */
function moment(value, where) {
    if (ScheduledTime.is(value)) return written(ScheduledTime.ms(value));
    if (value instanceof RealDate && !Number.isNaN(value.getTime())) return written(value.getTime());
    return written(agreed(host.instant(text(value, where, "2026-01-05T03:00Z")), where, "bad-time"));
}

const UNITS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000, w: 604800000 };

/** A span of time, in milliseconds. */
function span(value, where) {
    if (typeof value === "number" && value >= 0 && Number.isSafeInteger(Math.round(value * 1000))) return Math.round(value * 1000);
    const parts = typeof value === "string" ? /^(\d{1,9})(ms|s|m|h|d|w)$/.exec(value) : null;
    if (parts === null) refuse(`${where}: expected a number of seconds, or a text such as "90s", "15m", "36h", "7d" or "2w", not ${describe(value)}`);
    return Number(parts[1]) * UNITS[parts[2]];
}

/** A key: a time, a job id behind a ~, or the name of a run. */
function keyOf(value, where) {
    if (value.startsWith("~") && value.length > 1) return value;
    if (typeof host.instant(value) === "number" || /^\d{4}-\d\d-/.test(value)) return moment(value, where);
    agreed(host.runName(value), where, "bad-name");
    return `.${value}`;
}

/** A slot: a SlotID, or `workflow@time`; of a step `flow.step@time`. */
function slotOf(value, where) {
    if (SlotID.is(value)) return { workflow: value.getWorkflowID(), key: written(ScheduledTime.ms(value.getScheduledTime())) };
    const at = typeof value === "string" ? value.lastIndexOf("@") : -1;
    if (at < 1) refuse(`${where}: expected a slot such as "wordcount@2026-01-05T03:00Z", not ${describe(value)}`);
    return { workflow: workflowId(value.slice(0, at), where), key: keyOf(value.slice(at + 1), where) };
}

function pathText(value, where) {
    text(value, where, "/input/${year}-${month}-${day}/_READY");
    if (value.split("/").includes("..")) refuse(`${where}: expected a path without "..", not ${quote(value)}`);
    return value;
}

const moments = (value, where) => list(value, where, '["2026-01-05T03:00Z"]').map((one, n) => moment(one, `${where}[${n}]`));

/** The part that inputs and expected paths have in common: which path, and for which slots. */
function pathsOf(value, where) {
    const paths = {};
    if (typeof value.path === "function") paths.pathFunction = lend(value.path, "path", `${where}: path`);
    else paths.path = pathText(value.path, `${where}: path`);
    if (value.each !== undefined) paths.each = text(value.each, `${where}: each`, "my-workflow");
    if (value.except !== undefined) paths.except = moments(value.except, `${where}: except`);
    if (value.only !== undefined) paths.only = moments(value.only, `${where}: only`);
    if (paths.each !== undefined) return paths;
    if (paths.path === undefined || /\$\{(year|month|day|hour|minute|second)\}/.test(paths.path)) {
        refuse(`${where}: a path that differs from slot to slot needs the slots: each: "my-workflow" takes those of a workflow, each: "0 0 * * * ?" the times of a cron expression`, "missing-option");
    }
    for (const field of ["except", "only"]) {
        if (paths[field] !== undefined) refuse(`${where}: ${field} goes with each, which is missing`, "missing-option");
    }
    return paths;
}

const INPUT_FIELDS = ["path", "each", "except", "only", "at", "after", "goneAt", "goneAfter", "size", "content", "from"];

function inputOf(given, where) {
    const value = typeof given === "string" ? { path: given } : object(given, where, 'a path, or an object such as {path: "/in/${hour}", each: "my-workflow", after: "10m"}');
    only(value, INPUT_FIELDS, where);
    const input = pathsOf(value, where);
    for (const [field, other] of [["at", "after"], ["goneAt", "goneAfter"]]) {
        if (value[field] === undefined) continue;
        if (input.each !== undefined) refuse(`${where}: ${field} is one moment for all slots of each: expected ${other}, a span after the slot's time`, "conflicting-options");
        input[field] = moment(value[field], `${where}: ${field}`);
    }
    if (typeof value.after === "function") input.afterFunction = lend(value.after, "after", `${where}: after`);
    else if (value.after !== undefined) input.afterMs = span(value.after, `${where}: after`);
    if (value.after !== undefined && input.each === undefined) refuse(`${where}: after goes with each; without it, at says the moment`, "conflicting-options");
    if (value.goneAfter !== undefined) input.goneAfterMs = span(value.goneAfter, `${where}: goneAfter`);
    if (value.size !== undefined) input.size = count(value.size, `${where}: size`, 0, Number.MAX_SAFE_INTEGER);
    if (value.content !== undefined) input.content = String(value.content);
    if (value.from !== undefined) input.from = pathText(value.from, `${where}: from`);
    if (["size", "content", "from"].filter((field) => value[field] !== undefined).length > 1) {
        refuse(`${where}: expected one of size, content and from`, "conflicting-options");
    }
    return input;
}

const FAKE_FIELDS = ["takes", "fails", "unknown", "hangs", "reason", "writes", "gives"];
const FAKE = 'an object such as {takes: "5m", fails: 1, writes: ["/out/${hour}"]}, an array with one for each run of a slot, or a function that returns one';

function writesOf(given, where) {
    return list(given, where, '["/out/${year}"]').map((one, n) => {
        const at = `${where}[${n}]`;
        if (typeof one === "string") return { path: pathText(one, at) };
        only(object(one, at, 'a path, or an object such as {path: "/out", size: 10}'), ["path", "size", "content"], at);
        const made = { path: pathText(one.path, `${at}: path`) };
        if (one.size !== undefined) made.size = count(one.size, `${at}: size`, 0, Number.MAX_SAFE_INTEGER);
        if (one.content !== undefined) made.content = String(one.content);
        return made;
    });
}

/** How often a run fails: always, so many times at first, or always for a reason. */
function failsOf(value, where) {
    if (value === true || typeof value === "string") return 4294967295;
    if (value === false) return 0;
    if (typeof value !== "number") refuse(`${where}: expected true, the number of runs that fail at first, or the reason as a text, not ${describe(value)}`);
    return count(value, where);
}

/** What becomes of one run. */
function outcomeOf(given, where) {
    if (given === undefined || given === null) return {};
    only(object(given, where, FAKE), FAKE_FIELDS, where);
    const fake = {};
    if (given.takes !== undefined) fake.takesMs = span(given.takes, `${where}: takes`);
    if (given.fails !== undefined) fake.fails = failsOf(given.fails, `${where}: fails`);
    if (typeof given.fails === "string") fake.reason = given.fails;
    if (given.reason !== undefined) fake.reason = text(given.reason, `${where}: reason`);
    for (const flag of ["unknown", "hangs"]) {
        if (given[flag] !== undefined) fake[flag] = among(given[flag], `${where}: ${flag}`, [true, false]);
    }
    if (given.writes !== undefined) fake.writes = writesOf(given.writes, `${where}: writes`);
    if (given.gives !== undefined) fake.gives = jsonOf(object(given.gives, `${where}: gives`, "an object such as {rows: 3}"), `${where}: gives`);
    return fake;
}

function fakeOf(given, where) {
    if (typeof given === "function") return { function: lend(given, "run", where) };
    if (!Array.isArray(given)) return { runs: [outcomeOf(object(given, where, FAKE), where)] };
    if (given.length === 0) refuse(`${where}: expected at least one element: the n-th is for the n-th run, the last for all further ones`);
    return { runs: given.map((one, n) => outcomeOf(one, `${where}[${n}]`)) };
}

const VERBS = ["rerun", "kill", "pause", "resume", "backfill", "setRegister", "start", "signal"];

function actionOf(given, where) {
    object(given, where, 'an object such as {at: "2026-01-05T03:00Z", rerun: "my-workflow@2026-01-04T00:00Z"}');
    const verbs = VERBS.filter((verb) => given[verb] !== undefined);
    const extra = { backfill: ["from", "until", "mode"], setRegister: ["key", "value"], start: ["step", "name", "arguments"], signal: ["to", "payload"] };
    only(given, ["at", "reason", ...VERBS, ...(extra[verbs[0]] || [])], where);
    if (verbs.length !== 1) refuse(`${where}: expected one of ${VERBS.join(", ")}${verbs.length > 1 ? `, not ${verbs.join(" and ")}` : ""}`, "conflicting-options");
    const [verb] = verbs;
    const action = { at: moment(given.at, `${where}: at`), what: verb };
    if (given.reason !== undefined) action.reason = text(given.reason, `${where}: reason`);
    if (verb === "rerun" || verb === "kill") action.slot = slotOf(given[verb], `${where}: ${verb}`);
    else if (verb === "setRegister") Object.assign(action, { bucket: text(given.setRegister, `${where}: setRegister`), key: text(given.key, `${where}: key`), value: given.value });
    else if (verb === "signal") Object.assign(action, signalAction(given, where));
    else action.workflow = workflowId(given[verb], `${where}: ${verb}`);
    if (verb === "start") Object.assign(action, startAction(given, where));
    if (verb === "backfill") {
        action.from = moment(given.from, `${where}: from`);
        action.until = moment(given.until, `${where}: until`);
        action.mode = given.mode === undefined ? "missing" : among(given.mode, `${where}: mode`, ["missing", "unsuccessful", "all"]);
    }
    return action;
}

function signalAction(given, where) {
    const action = { signal: text(given.signal, `${where}: signal`, "approval"), slot: slotOf(given.to, `${where}: to`) };
    return given.payload === undefined ? action : { ...action, payload: jsonOf(given.payload, `${where}: payload`) };
}

function startAction(given, where) {
    const action = {};
    if (given.name !== undefined) {
        action.name = text(given.name, `${where}: name`, "order-42");
        agreed(host.runName(action.name), `${where}: name`, "bad-name");
    }
    if (given.step !== undefined) {
        action.step = slotOf(given.step, `${where}: step`);
        if (!`${action.step.workflow}`.startsWith(`${given.start}.`)) refuse(`${where}: step: expected a step of ${given.start} and the run that did it, such as "${given.start}.load@order-42"`);
    }
    if (given.arguments !== undefined) action.arguments = jsonOf(object(given.arguments, `${where}: arguments`, 'an object such as {day: "2026-11-21"}'), `${where}: arguments`);
    return action;
}

const stateOf = (value, where) => {
    if (typeof value === "string" && host.states.includes(value)) return value;
    const close = typeof value === "string" ? host.closest(value, host.states) : undefined;
    refuse(`${where}: expected a state, not ${describe(value)}; ${close ? `did you mean "${close}"?` : `states: ${host.states.join(", ")}`}`);
};

function countsOf(given, where) {
    if (typeof given === "string") return { all: stateOf(given, where) };
    const counts = {};
    for (const [state, number] of Object.entries(object(given, where, 'a state that all slots have, or an object such as {succeeded: 743, waiting: 1}'))) {
        counts[stateOf(state, where)] = count(number, `${where}: ${state}`);
    }
    return { counts };
}

function standsOf(given, where) {
    // A run of a flow that recovered from failures of steps has succeeded.
    const stands = (value, at) => (value === "recovered" ? { state: "succeeded", recovered: true } : { state: stateOf(value, at) });
    if (typeof given === "string") return stands(given, where);
    only(object(given, where, 'a state, or an object such as {state: "waiting", because: "not ready"}'), ["state", "because"], where);
    const expected = stands(given.state, `${where}: state`);
    if (given.because !== undefined) expected.because = text(given.because, `${where}: because`);
    return expected;
}

function expectedPath(given, where) {
    if (typeof given === "string") return pathsOf({ path: given }, where);
    return pathsOf(only(object(given, where, 'a path, or an object such as {path: "/out/${hour}", each: "my-workflow"}'), ["path", "each", "except", "only"], where), where);
}

function expectedRun(given, where) {
    only(object(given, where, 'an object such as {slot: "my-workflow@2026-01-05T03:00Z", properties: {name: "value"}}'), ["slot", "number", "state", "settings", "properties", "inputs", "gives"], where);
    const run = { slot: slotOf(given.slot, `${where}: slot`) };
    if (given.number !== undefined) run.number = count(given.number, `${where}: number`, 1);
    if (given.state !== undefined) run.state = among(given.state, `${where}: state`, ["dispatched", "running", "succeeded", "failed", "killed", "unknown"]);
    for (const part of ["settings", "properties", "inputs", "gives"]) {
        if (given[part] !== undefined) run[part] = object(given[part], `${where}: ${part}`, 'an object such as {name: "value"}');
    }
    return run;
}

function expectedFile(given, where) {
    const value = typeof given === "string" ? { like: given } : object(given, where, 'the path of a file or folder beside the test, or an object such as {like: "expected/out", compare: "json lines"}');
    only(value, ["like", "compare"], where);
    const compare = value.compare === undefined ? "bytes" : among(value.compare, `${where}: compare`, ["bytes", "json lines"]);
    return { like: pathText(value.like, `${where}: like`), compare };
}

const EXPECT_FIELDS = ["slots", "states", "outputs", "missing", "runs", "mostAtOnce", "files", "check"];

/** The entries of an object, each named in what is said about it. */
function entries(given, where, example, make) {
    if (given === undefined) return [];
    return Object.entries(object(given, where, example)).map(([name, value]) => [name, make(value, `${where}[${quote(name)}]`)]);
}

const all = (given, where, example, make) =>
    (given === undefined ? [] : list(given, where, example).map((one, n) => make(one, `${where}[${n}]`)));

function expectationsOf(given, where) {
    const example = '{slots: {"my-workflow": "succeeded"}}';
    if (given === undefined) refuse(`${where} is missing: expected an object such as ${example}; a test that expects nothing can't fail`, "missing-option");
    only(object(given, where, `an object such as ${example}`), EXPECT_FIELDS, where);
    if (Object.keys(given).length === 0) refuse(`${where} is empty: expected at least one of ${EXPECT_FIELDS.join(", ")}`, "missing-option");
    const expect = {
        slots: entries(given.slots, `${where}: slots`, example, countsOf),
        states: entries(given.states, `${where}: states`, '{"my-workflow@2026-01-05T03:00Z": "waiting"}', standsOf)
            .map(([slot, stands]) => ({ slot: slotOf(slot, `${where}: states`), ...stands })),
        outputs: all(given.outputs, `${where}: outputs`, '["/out/_SUCCESS"]', expectedPath),
        missing: all(given.missing, `${where}: missing`, '["/out/_FAILED"]', expectedPath),
        runs: all(given.runs, `${where}: runs`, '[{slot: "my-workflow@2026-01-05T03:00Z", properties: {}}]', expectedRun),
        mostAtOnce: entries(given.mostAtOnce, `${where}: mostAtOnce`, '{"my-workflow": 2}', (value, at) => count(value, at)),
        files: entries(given.files, `${where}: files`, '{"data/output": "expected/output"}', expectedFile),
    };
    if (given.check !== undefined) {
        if (typeof given.check !== "function") refuse(`${where}: check: expected a function of the result, not ${describe(given.check)}`);
        expect.check = lend(given.check, "check", `${where}: check`);
    }
    return expect;
}

const TEST_FIELDS = ["from", "until", "settle", "workflows", "met", "before", "inputs", "registers", "runs", "actions", "maxRunning", "executors", "copy", "expect"];

function registersOf(given, where) {
    const registers = [];
    for (const [bucket, values] of Object.entries(object(given, where, '{"bucket": {"key": 1}}'))) {
        for (const [key, value] of Object.entries(object(values, `${where}: ${bucket}`, '{"key": 1}'))) registers.push([bucket, key, value]);
    }
    return registers;
}

const ids = (given, where) => list(given, where, '["my-workflow"]').map((id, n) => workflowId(id, `${where}[${n}]`));

function planOf(given, where) {
    only(object(given, where, 'an object such as {from: "2026-01-01T00:00Z", until: "2026-02-01T00:00Z", expect: {...}}'), TEST_FIELDS, where);
    const plan = {
        from: moment(given.from, `${where}: from`),
        until: moment(given.until, `${where}: until`),
        inputs: all(given.inputs, `${where}: inputs`, '["/input/_READY"]', inputOf),
        runs: entries(given.runs, `${where}: runs`, '{"my-workflow": {takes: "5m"}}', fakeOf),
        actions: all(given.actions, `${where}: actions`, '[{at: "2026-01-05T03:00Z", pause: "my-workflow"}]', actionOf),
        expect: expectationsOf(given.expect, `${where}: expect`),
    };
    if (plan.from >= plan.until) refuse(`${where}: from is ${given.from}, until is ${given.until}: expected until to be later`);
    if (given.settle !== undefined) plan.settleMs = span(given.settle, `${where}: settle`);
    if (given.workflows !== undefined) plan.workflows = ids(given.workflows, `${where}: workflows`);
    if (given.met !== undefined) plan.met = ids(given.met, `${where}: met`);
    if (given.before !== undefined) plan.before = among(given.before, `${where}: before`, ["succeeded", "nothing"]);
    if (given.registers !== undefined) plan.registers = registersOf(given.registers, `${where}: registers`);
    if (given.maxRunning !== undefined) plan.maxRunning = count(given.maxRunning, `${where}: maxRunning`, 1);
    if (given.executors !== undefined) plan.executors = among(given.executors, `${where}: executors`, ["fake", "real"]);
    if (given.copy !== undefined) plan.copy = list(given.copy, `${where}: copy`, '["bin"]').map((path, n) => pathText(path, `${where}: copy[${n}]`));
    if (plan.executors !== "real") {
        if (plan.expect.files.length > 0) refuse(`${where}: expect: files compares what real commands wrote: it goes with executors: "real"`, "conflicting-options");
        if (plan.copy !== undefined) refuse(`${where}: copy brings files for real commands: it goes with executors: "real"`, "conflicting-options");
    }
    return plan;
}

function test(name, options) {
    spot = host.same(looked, new Error().stack);
    looked = undefined;
    try {
        text(name, "kelos.test: name", "a late input holds its hour only");
        const plan = planOf(options, `kelos.test ${quote(name)}`);
        const problem = host.test(name, JSON.stringify(plan), here());
        if (Array.isArray(problem)) refuse(problem[1], problem[0]);
    } finally {
        spot = undefined;
    }
}

/** Opens the world of a test file. */
export function installTests() {
    globalThis.kelos = ownObject({ test, ...ownApi }, {});
}

/** What the function of a check is given. */
class Result {
    #slots;
    #paths;

    constructor(given) {
        this.#slots = new Map(given.slots.map((slot) => [`${slot.workflow}@${slot.key}`, slot]));
        this.#paths = given.paths;
    }

    slots(workflow) {
        return [...this.#slots.values()].filter((slot) => workflow === undefined || slot.workflow === workflow);
    }

    slot(slot) {
        const { workflow, key } = slotOf(slot, "slot");
        return this.#slots.get(`${workflow}@${key}`);
    }

    state(slot) {
        return this.slot(slot)?.state;
    }

    runs(workflow) {
        return this.slots(workflow).flatMap((slot) => slot.runs);
    }

    paths() {
        return [...this.#paths];
    }
}

const slotFrom = (workflow, ms) => new SlotID(workflow, ScheduledTime.at(ms));

const CALLS = {
    run({ ms, ...run }, fn, where) {
        // The run of a flow may have a name in place of a time.
        const slot = ms === null ? undefined : slotFrom(run.workflow, ms);
        return outcomeOf(fn({ slot, time: slot?.getScheduledTime(), ...run }), `what the function of ${where} returned`);
    },
    path({ workflow, times }, fn, where) {
        return times.map((ms) => {
            const path = fn(slotFrom(workflow, ms));
            return path === undefined || path === null ? null : pathText(path, `what the function of ${where} returned`);
        });
    },
    after({ workflow, times }, fn, where) {
        return times.map((ms) => span(fn(slotFrom(workflow, ms)), `what the function of ${where} returned`));
    },
    check(given, fn, where) {
        const said = fn(new Result(given));
        if (said === undefined || said === true) return [];
        if (said === false) return ["expected the function to return true, not false"];
        const words = Array.isArray(said) ? said : [said];
        if (!words.every((word) => typeof word === "string")) refuse(`what the function of ${where} returned: expected nothing, true, false, or what is wrong as texts, not ${describe(said)}`, "bad-answer");
        return words;
    },
};

/** Calls a function of a test; argument and answer are JSON. */
export function callTest(index, given) {
    const { fn, kind, where } = fakes[index];
    return JSON.stringify(CALLS[kind](JSON.parse(given), fn, where));
}
