// Flows: workflows whose job is a graph of steps. Mistakes of steps are told all at once, each where it stands. A part of one module
// with prelude.js; it stands after prelude_kelos.js.

/** The fields of workflows that flows have: all but the job, and but what puts slots together, as a run is of one slot. */
const FLOW_FIELDS = ["steps", "runAs", ...BUILDER_FIELDS.filter((field) => ![...COMMAND_FIELDS, "job", "batch"].includes(field))];
/** What has no meaning for runs that only requests and event schedules begin. */
const OF_TIMES = ["after", "trigger", "startTime", "endTime", "catchUp", "waitTimeoutSeconds", "waitTimeoutFrom", "daylightSaving"];
const STEP_FIELDS = ["needs", "onError", "atOnce", "forEach", "most", "concurrency", "signal", "within", "inputs", "job", "retry", "pools", "runsOn", "onLost", "description", ...COMMAND_FIELDS];
const STEPS = 'an object such as {extract: {command: ["bin/extract"]}, load: {needs: "extract", command: ["bin/load"]}}';
const ONE_STEP = 'an object such as {needs: "extract", command: ["bin/load", "${rows}"]}';

/** What fields of steps are called elsewhere. */
const CALLED_IN_STEPS = {
    after: "needs", dependsOn: "needs", depends_on: "needs", onFailure: "onError", on_failure: "onError", errorTask: "onError",
    timeout: "timeoutSeconds", externalService: "job", executor: "job", args: "inputs", arguments: "inputs", parameters: "inputs", maxRetryCount: "retry",
};

/** Reads a part of a step. A refusal is told where the part stands, and reading goes on. */
function ofStep(name, text, read) {
    try {
        return read();
    } catch (error) {
        if (error === null || typeof error !== "object" || error.kelosCode === undefined) throw error;
        host.blameStep(error.message, here(), error.kelosCode, name, text);
        return undefined;
    }
}

function knownOfStep(given, where, name) {
    for (const field of Object.keys(given)) {
        if (STEP_FIELDS.includes(field)) continue;
        const close = host.closest(field, STEP_FIELDS);
        const advice = Object.hasOwn(CALLED_IN_STEPS, field) ? `it is called '${CALLED_IN_STEPS[field]}' here`
            : close ? `did you mean '${close}'?` : `known fields: ${STEP_FIELDS.join(", ")}`;
        ofStep(name, field, () => refuse(`${where}: unknown field '${field}'; ${advice}`, "unknown-option"));
    }
}

function stepName(value, where) {
    agreed(host.stepName(text(value, where, "load")), where, "bad-name");
    return value;
}

function needsOf(value, where) {
    if (Array.isArray(value)) return value.map((one, n) => stepName(one, `${where}[${n}]`));
    if (typeof value === "string" && value !== "") return [stepName(value, where)];
    refuse(`${where}: expected the name of a step, or an array such as ["extract", "clean"], not ${describe(value)}`);
}

/** The list that a step is done for. */
function forEachOf(given, where) {
    if (given.forEach === undefined) {
        const field = ["most", "concurrency"].find((one) => given[one] !== undefined);
        if (field !== undefined) refuse(`${where}: ${field} is about the items of a list: expected it with forEach, which is missing`, "missing-option");
        return undefined;
    }
    if (typeof given.forEach !== "string" || given.forEach === "") {
        const advice = Array.isArray(given.forEach) ? '; a list of its own is written inputs: {files: [...]}, forEach: "files"' : "";
        refuse(`${where}: forEach: expected the name of an input that is a list, such as "files", not ${describe(given.forEach)}${advice}`);
    }
    const list = { input: given.forEach };
    if (given.most !== undefined) list.most = count(given.most, `${where}: most`, 1, 10000);
    if (given.concurrency !== undefined) list.concurrency = count(given.concurrency, `${where}: concurrency`, 1);
    return list;
}

function signalOf(given, where) {
    if (given.signal === undefined) {
        if (given.within !== undefined) refuse(`${where}: within says how long to wait for a signal: expected it with signal, which is missing`, "missing-option");
        return undefined;
    }
    const signal = { name: text(given.signal, `${where}: signal`, "approval") };
    if (given.within === undefined) return signal;
    const within = ofStep(given.name, "within", () => {
        const length = typeof given.within === "number" || /^\d+[smhdw]$/.test(given.within) ? shift(given.within, `${where}: within`) : 0;
        if (length > 0) return length;
        refuse(`${where}: within: expected a length of time such as "2d", "90m" or a number of seconds, not ${describe(given.within)}`);
    });
    return { ...signal, withinSeconds: within };
}

/** What a step does: a job as workflows have, or nothing where it waits for a signal. */
function jobOfStep(given, where) {
    const doing = ["job", "runsOn", "onLost", ...COMMAND_FIELDS].find((field) => given[field] !== undefined);
    if (given.signal !== undefined) {
        const other = doing || ["forEach", "retry", "pools"].find((field) => given[field] !== undefined);
        if (other !== undefined) {
            refuse(`${where}: both signal and ${other} are given: expected one of them, because a step that waits for a signal runs nothing`, "conflicting-options");
        }
        return { executor: "signal" };
    }
    if (given.job === undefined && given.command === undefined && given.shell === undefined) {
        refuse(`${where}: none of command, shell, job and signal is given: expected what it does`, "missing-option");
    }
    return withWorkers(jobOf(given, where), given, where);
}

/** A step as the model writes it, but for the failures that it handles. */
function stepOf(name, given, flow) {
    const where = `${flow}: step ${quote(name)}`;
    const step = { name, retry: { count: 0 } };
    if (ofStep(name, "", () => stepName(name, where)) === undefined) return undefined;
    if (ofStep(name, "", () => object(given, where, ONE_STEP)) === undefined) return undefined;
    knownOfStep(given, where, name);
    const read = (field, to, reader) => {
        if (given[field] !== undefined) step[to] = ofStep(name, field, () => reader(given[field], `${where}: ${field}`));
    };
    read("needs", "needs", needsOf);
    read("atOnce", "atOnce", (value, at) => among(value, at, [true, false]));
    read("inputs", "inputs", (value, at) => jsonOf(object(value, at, 'an object such as {rows: 1000}'), at));
    read("pools", "pools", poolsOf);
    read("description", "about", text);
    read("retry", "retry", (retry) => retryOf({ retry }, where));
    const part = (reader, ...fields) => ofStep(name, fields.find((field) => given[field] !== undefined) || "", () => reader({ ...given, name }, where));
    step.forEach = part(forEachOf, "forEach", "most", "concurrency");
    step.signal = part(signalOf, "signal", "within");
    // Of a step without a job the graph is judged all the same.
    step.job = part(jobOfStep, "signal", "job", "command", "shell") || { executor: "command" };
    return step;
}

/** Tells the steps that handle failures of which these are. */
function handleErrors(steps, given, flow) {
    const handles = {};
    for (const { name } of steps) {
        const { onError } = given[name];
        const where = `${flow}: step ${quote(name)}: onError`;
        if (onError === undefined) continue;
        ofStep(name, "onError", () => {
            const handler = stepName(onError, where);
            if (!Object.hasOwn(given, handler)) {
                const close = host.closest(handler, Object.keys(given));
                refuse(`${flow}: step ${name} refers to ${handler}, and the flow has no such step${close ? `: did you mean ${close}?` : ""}`, "bad-flow");
            }
            handles[handler] = [...(handles[handler] || []), name];
        });
    }
    for (const step of steps) {
        if (handles[step.name] !== undefined) step.handles = handles[step.name];
        else if (step.atOnce) {
            ofStep(step.name, "atOnce", () => refuse(`${flow}: step ${quote(step.name)}: atOnce says when it handles a failure, and no step has ` +
                `onError: ${quote(step.name)}: expected one`, "conflicting-options"));
        }
    }
}

/** The steps, in the order in which they are written. */
function stepsOf(given, flow) {
    if (given === undefined) refuse(`${flow}: steps is missing: expected ${STEPS}`, "missing-option");
    object(given, `${flow}: steps`, STEPS);
    if (Object.keys(given).length === 0) refuse(`${flow}: steps: expected at least one, as in ${STEPS}`, "missing-option");
    const steps = Object.keys(given).map((name) => stepOf(name, given[name], flow)).filter((step) => step !== undefined);
    const unread = Object.keys(given).filter((name) => !steps.some((step) => step.name === name));
    for (const step of steps) step.needs = (step.needs || []).filter((name) => !unread.includes(name));
    handleErrors(steps, given, flow);
    return steps;
}

/** The fields of a flow that say when it runs; none where only requests and event schedules begin runs. */
function timesOfFlow(options, where) {
    if (options.schedule === undefined) {
        for (const field of OF_TIMES.filter((one) => options[one] !== undefined)) {
            host.blame(`${where}: ${field} is about the times of a schedule: expected it with schedule, which is missing`, here(), "missing-option");
        }
        return { trigger: Made.tree("trigger", api.alwaysTrigger(), where) };
    }
    return {
        ...waitOf(options, where),
        schedule: zonedSchedule(timesOf(options.schedule, `${where}: schedule`), options, where),
        trigger: zoned(triggerAfter(options, where), options.timeZone),
        catchUp: catchUpOf(options.catchUp, where) || "latest",
    };
}

/** Has the commands of a flow run as a user of the system, where a step names no other. */
function runStepsAs(user, steps) {
    for (const { job } of steps) {
        if (["command", "spark"].includes(job.executor) && job.settings) job.settings = { runAs: user, ...job.settings };
    }
}

/** Has the commands of a flow run by workers with these labels, where a step names no others. */
function runStepsOn(options, steps, where) {
    const own = withWorkers({ executor: "command" }, options, where);
    delete own.executor;
    for (const step of steps) {
        if (OF_WORKERS.includes(step.job.executor)) step.job = { ...own, ...step.job };
    }
}

/** Says of each step what follows an unknown outcome, except of steps that wait for a signal. */
function knowEnds(steps, flow) {
    for (const step of steps.filter(({ signal }) => signal === undefined)) {
        const retry = step.retry || { count: 0 };
        step.retry = ofStep(step.name, "retry", () => withUnknown(retry, step.job, usualOf(step.job), `${flow}: step ${quote(step.name)}`)) || retry;
    }
}

/** Defines a flow; gives its name. */
function flow(name, options) {
    const usage = 'kelos.flow("my-flow", {steps: {...}})';
    if (typeof name !== "string") refuse(`kelos.flow: expected a name and an object, as in ${usage}, not ${describe(name)} as the name`);
    agreed(host.id(name), "kelos.flow: name", "bad-name");
    const where = `kelos.flow ${quote(name)}`;
    object(options, where, 'an object such as {schedule: "daily", steps: {...}}');
    for (const field of [...COMMAND_FIELDS, "job"].filter((one) => one !== "runAs" && options[one] !== undefined)) {
        refuse(`${where}: ${field} belongs into a step: expected steps: {run: {${field}: ...}}, or kelos.workflow for a single job`, "unknown-option");
    }
    if (options.batch !== undefined) refuse(`${where}: a run of a flow is of one slot: expected no batch`, "conflicting-options");
    known(options, FLOW_FIELDS, where);
    const steps = stepsOf(options.steps, where);
    if (options.runAs !== undefined) runStepsAs(userOf(options.runAs, `${where}: runAs`), steps);
    runStepsOn(options, steps, where);
    knowEnds(steps, where);
    enter("kelos.flow", {
        ...timesOfFlow(options, where),
        ...draftOf(options, where),
        id: name,
        concurrency: options.concurrency === undefined ? 1 : count(options.concurrency, `${where}: concurrency`, 1),
        job: { executor: "flow" },
        flow: { steps },
    });
    return name;
}

ownApi.flow = begun(flow);
