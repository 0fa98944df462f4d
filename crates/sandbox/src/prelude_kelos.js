// Kelos's own builder of workflows. Fields that mean the same as in `celos.defineWorkflow` have the same names and are read by the same
// functions; what it makes is the same definition. A part of one module with prelude.js; it stands after prelude_workflow.js.

const BUILDER_FIELDS = ["schedule", "after", "trigger", "constraints", ...COMMAND_FIELDS, "job", "concurrency", "pools", "parameters", "retry", "runsOn", "onLost", "writes", "startTime",
    "endTime", "catchUp", "batch", "version", "waitTimeoutSeconds", "waitTimeoutFrom", "deadline", "timeZone", "daylightSaving", "url", "contacts", "tags", "description"];
const BUILDER = 'an object such as {schedule: "0 6 * * *", command: ["bin/load", "${year}-${month}-${day}"]}';
const TIMES = '"0 6 * * *", "minutely", "hourly", "daily", or celos.dependentSchedule("my-workflow")';

/** What these fields of other builders are called here. */
const CALLED_HERE = { externalService: "job", schedulingStrategy: "concurrency", maxRetryCount: "retry", cron: "schedule", zone: "timeZone", depends_on: "after" };

/** Reports the fields of other builders, and then those that nobody knows. */
function knownOfBuilder(options, where) {
    const unknown = {};
    for (const field of Object.keys(options)) {
        const advice = field === "id" ? "the name is the first argument" : Object.hasOwn(CALLED_HERE, field) && `it is called '${CALLED_HERE[field]}' here`;
        if (advice) host.reportField(`${where}: unknown field '${field}'; ${advice}`, here(), "unknown-option", field, true);
        else unknown[field] = options[field];
    }
    known(unknown, BUILDER_FIELDS, where);
}

/** The schedule: a word, a cron expression, or what a function of `celos` makes. */
function timesOf(value, where) {
    if (value === undefined) refuse(`${where} is missing: expected ${TIMES}`, "missing-option");
    if (Made.is(value)) return Made.tree("schedule", value, where);
    if (typeof value !== "string" || value === "") refuse(`${where}: expected ${TIMES}, not ${describe(value)}`);
    if (Object.hasOwn(NAMED_SCHEDULES, value)) return { expression: NAMED_SCHEDULES[value] };
    if (/^\w+$/.test(value)) {
        if (PERIODS.includes(value)) {
            const cron = { weekly: "0 6 * * 1", monthly: "0 6 1 * *" }[value];
            const also = cron ? `, and "${cron}" is at a time of it` : "";
            refuse(`${where}: expected ${TIMES}, not ${quote(value)}; celos.calendar(${quote(value)}) runs about each period once it has ended${also}`, "bad-cron");
        }
        const close = host.closest(value, Object.keys(NAMED_SCHEDULES));
        refuse(`${where}: expected ${TIMES}, not ${quote(value)}${close ? `; did you mean "${close}"?` : ""}`, "bad-cron");
    }
    agreed(host.cron(value), where, "bad-cron");
    return { expression: value };
}

/** The trigger: the workflows that come before it, and its own. */
function triggerAfter(options, where) {
    const { after = [], trigger } = options;
    const names = Array.isArray(after) ? after : [after];
    const all = names.map((name, n) => {
        const place = Array.isArray(after) ? `${where}: after[${n}]` : `${where}: after`;
        if (Made.is(name)) {
            Made.tree("trigger", name, place);
            return name;
        }
        const workflow = workflowId(name, place);
        return new Made("trigger", "successTrigger", { type: "success", workflow });
    });
    if (trigger !== undefined) {
        Made.tree("trigger", trigger, `${where}: trigger`);
        all.push(trigger);
    }
    const one = all.length === 1 ? all[0] : all.length === 0 ? api.alwaysTrigger() : combined("andTrigger", "and", all);
    return Made.tree("trigger", one, `${where}: trigger`);
}

/** The job: a command that stands in the fields themselves, or what a function of `celos` makes. */
function jobOf(options, where) {
    const given = COMMAND_FIELDS.filter((field) => options[field] !== undefined);
    if (options.job === undefined) {
        if (options.command === undefined && options.shell === undefined) {
            refuse(`${where}: neither command, shell nor job is given: expected one of them`, "missing-option");
        }
        const command = Object.fromEntries(given.map((field) => [field, options[field]]));
        return { executor: "command", settings: commandSettings(command, where), properties: { fixed: shownProperties(command, where) } };
    }
    if (given.length > 0) refuse(`${where}: both job and ${given[0]} are given: expected ${given[0]} in what makes the job`, "conflicting-options");
    return Made.tree("external service", options.job, `${where}: job`);
}

function waitOf(options, where) {
    const from = waitTimeoutFromOf(options, where);
    if (options.waitTimeoutSeconds === undefined) return {};
    return {
        waitTimeoutSeconds: count(options.waitTimeoutSeconds, `${where}: waitTimeoutSeconds`, 0, Number.MAX_SAFE_INTEGER),
        waitTimeoutFrom: from === undefined ? "opening" : from,
    };
}

/** Defines a workflow; gives its name. */
function workflow(name, options) {
    const usage = 'kelos.workflow("my-workflow", {...})';
    if (typeof name !== "string") refuse(`kelos.workflow: expected a name and an object, as in ${usage}, not ${describe(name)} as the name`);
    agreed(host.id(name), "kelos.workflow: name", "bad-name");
    const where = `kelos.workflow ${quote(name)}`;
    knownOfBuilder(object(options, where, BUILDER), where);
    const draft = {
        ...draftOf(options, where),
        ...waitOf(options, where),
        id: name,
        schedule: zonedSchedule(timesOf(options.schedule, `${where}: schedule`), options, where),
        concurrency: options.concurrency === undefined ? 1 : count(options.concurrency, `${where}: concurrency`, 1),
        trigger: zoned(triggerAfter(options, where), options.timeZone),
        job: withWorkers(jobOf(options, where), options, where),
        catchUp: catchUpOf(options.catchUp, where) || "latest",
    };
    enter("kelos.workflow", { ...draft, retry: withUnknown(draft.retry, draft.job, usualOf(draft.job), where) });
    return name;
}

// --- the `kelos` object ---

/** What is said of the whole project of the file. */
function project(options) {
    const where = "kelos.project";
    const usage = 'an object such as {shares: {reports: {sees: {runs: ["load"]}}}}';
    const given = object(options, where, usage);
    known(given, ["shares"], where);
    if (given.shares === undefined) refuse(`${where}: 'shares' is missing: expected ${usage}`, "missing-option");
    agreed(host.shares(JSON.stringify(object(given.shares, `${where}: shares`, usage))), where);
}

const ownApi = { workflow: begun(workflow), project: (options) => project(options), kafkaMessage: (options) => kafkaMessage(options) };

/** Functions that make a part of a definition, and stand within the call that defines it. */
const PARTS = ["kafkaMessage"];

/** An object that refuses names that it does not have; `elsewhere` says where some of them are. */
function ownObject(functions, elsewhere) {
    return new Proxy(functions, {
        get(target, name) {
            if (Object.hasOwn(target, name) && !PARTS.includes(name)) looked = new Error().stack;
            if (name in target || typeof name === "symbol" || name === "then" || name === "toJSON") return target[name];
            const close = host.closest(name, Object.keys(target));
            const advice = elsewhere[name] || (close ? `did you mean '${close}'?` : `it has ${Object.keys(target).join(", ")}`);
            refuse(`kelos has no function '${name}'; ${advice}`, "unknown-function");
        },
    });
}
