// Workflows and their jobs, the `celos` object itself, and the two doors through which the host
// comes in: `install` and `call`. The last part of one module with prelude.js.

const SECRET = '{secret: "env:KELOS_SECRET_API", prefix: "Bearer "}';
const SECRET_PLACES = 'expected it as a variable of a command, env: {PASSWORD: {secret: "env:KELOS_SECRET_DB"}}, which the command reads, or in headers, ' +
    "in a body, in a message, or among the properties of a job of Oozie";

/** Whether a value declares a secret: an object with its source, and maybe with a prefix. Other objects with such a field are data. */
function isSecret(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value) && !Made.is(value) && typeof value.secret === "string" &&
        Object.keys(value).every((name) => name === "secret" || name === "prefix");
}

/** The declaration of a secret, whose value is read where the run starts. */
function secretOf(value, where) {
    agreed(host.secret(value.secret), where, "secret-in-script");
    const secret = { secret: value.secret };
    if (value.prefix !== undefined) secret.prefix = systemText(value.prefix, `${where}: prefix`);
    return secret;
}

/** The text of a property; undefined where there is nothing to pass. */
function propertyText(value, where) {
    if (isSecret(value)) refuse(`${where}: a secret would be seen here, in a list of processes or in what is shown: ${SECRET_PLACES}`, "out-of-place");
    if (typeof value === "string") return value;
    if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value);
    if (ScheduledTime.is(value) || SlotID.is(value) || WorkflowID.is(value) || DateTime.is(value)) return String(value);
    refuse(`${where}: expected a string, not ${describe(value)}`);
}

/** Copies properties, also inherited ones, over a target. */
function mergeProperties(source, target) {
    object(source, "celos.mergeProperties: source");
    object(target, "celos.mergeProperties: target");
    for (const name in source) target[name] = source[name];
    return target;
}

/** The properties of a job as texts: the defaults of the file first. */
function textProperties(given, where) {
    const merged = mergeProperties(given, mergeProperties(defaultProperties(), {}));
    const texts = {};
    for (const name of Object.keys(merged)) {
        if (merged[name] === undefined) {
            host.warn(`${where}: property '${name}' is undefined and left out`, new Error().stack, "odd-value");
            continue;
        }
        const place = `${where}: property '${name}'`;
        texts[name] = isSecret(merged[name]) ? secretOf(merged[name], place) : propertyText(merged[name], place);
    }
    return texts;
}

const PROPERTIES = 'an object such as {"oozie.wf.application.path": "/my-workflow/workflow.xml"}, or a function of the slot that returns one';

function makePropertiesGen(properties) {
    if (typeof properties !== "function") object(properties, "celos.makePropertiesGen: properties", PROPERTIES);
    return function (slotID) {
        const own = typeof properties === "function" ? properties(slotID) : properties;
        return textProperties(object(own, "celos.makePropertiesGen: properties"), "celos.makePropertiesGen");
    };
}

function oozieExternalService(properties, oozieURL) {
    const where = "celos.oozieExternalService";
    const url = oozieURL === undefined ? variable("CELOS_DEFAULT_OOZIE") : oozieURL;
    if (url === undefined) {
        refuseInWords("Undefined Oozie URL", ': expected a URL such as "http://oozie:11000/oozie" as the second argument of ' +
            `${where}, or in the variable CELOS_DEFAULT_OOZIE`);
    }
    text(url, `${where}: oozieURL`, "http://oozie:11000/oozie");
    const job = { executor: "oozie", settings: { url } };
    if (typeof properties === "function") {
        job.properties = { function: keep(properties, "oozie", where) };
    } else {
        job.properties = { fixed: textProperties(object(properties, `${where}: properties`, PROPERTIES), where) };
    }
    return new Made("external service", "oozieExternalService", job);
}

/** What every job of a process of this machine can say. */
const PROCESS_FIELDS = ["env", "runAs", "cwd", "timeoutSeconds", "graceSeconds", "logLimitBytes"];
/** The name of a user of the system. */
function userOf(value, where) {
    const user = text(value, where, "etl");
    if (!/^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}$/.test(user)) refuse(`${where}: expected the name of a user of the system such as "etl", not ${quote(user)}`);
    return user;
}

const COMMAND_FIELDS = ["command", "shell", ...PROCESS_FIELDS, "properties"];
const COMMAND = 'an object such as {command: ["program", "${year}"]} or {shell: "echo ${year}"}, or a function of the slot that returns one';

/** A text for the operating system, which can't hold a NUL character. */
function systemText(value, where) {
    const made = propertyText(value, where);
    if (made.includes("\0")) refuse(`${where}: a NUL character can't be passed to a program`);
    return made;
}

function programOf(options, where) {
    const { command, shell } = options;
    if (command !== undefined && shell !== undefined) refuse(`${where}: expected either command or shell, not both`, "conflicting-options");
    if (shell !== undefined) {
        return { shell: systemText(text(shell, `${where}: shell`, "echo ${year}"), `${where}: shell`) };
    }
    if (command === undefined) refuse(`${where}: neither command nor shell is given: expected one of them`, "missing-option");
    if (!Array.isArray(command) || command.length === 0) {
        const advice = typeof command === "string" ? "; for the text of a shell script use shell" : "";
        refuse(`${where}: command: expected an array such as ["program", "argument"], not ` +
            `${Array.isArray(command) ? "an empty one" : describe(command)}${advice}`);
    }
    const words = command.map((word, n) => systemText(word, `${where}: command[${n}]`));
    if (words[0] === "") refuse(`${where}: command[0]: expected the name of a program, not ""`);
    return { command: words };
}

/** Texts by name, as `NAME=value`. */
function environmentOf(env, where, example = '{LANG: "C"}', what = "variable", mayBeSecret = false) {
    const texts = {};
    for (const [name, value] of Object.entries(object(env, where, `an object such as ${example}`))) {
        if (name === "" || /[=\0]/.test(name)) refuse(`${where}: ${quote(name)} can't be the name of a ${what}`);
        if (value === undefined) continue;
        texts[name] = mayBeSecret && isSecret(value) ? secretOf(value, `${where}.${name}`) : systemText(value, `${where}.${name}`);
    }
    return texts;
}

/** The settings of a command, and nothing but what was given. */
function commandSettings(options, where) {
    known(options, COMMAND_FIELDS, where);
    return { ...programOf(options, where), ...processSettings(options, where) };
}

/** How a process is run: what was given of it. */
function processSettings(options, where) {
    const settings = {};
    const amount = (field, least, most) => {
        if (options[field] !== undefined) settings[field] = count(options[field], `${where}: ${field}`, least, most);
    };
    if (options.env !== undefined) settings.env = environmentOf(options.env, `${where}: env`, '{LANG: "C"}', "variable", true);
    if (options.runAs !== undefined) settings.runAs = userOf(options.runAs, `${where}: runAs`);
    if (options.cwd !== undefined) settings.cwd = systemText(text(options.cwd, `${where}: cwd`, "/srv/jobs"), `${where}: cwd`);
    amount("timeoutSeconds", 1);
    amount("graceSeconds", 0);
    amount("logLimitBytes", 0, Number.MAX_SAFE_INTEGER);
    return settings;
}

function commandExternalService(options) {
    if (typeof options === "string") {
        refuse(`celos.commandExternalService: expected ${COMMAND}, not ${quote(options)}; a shell command is written {shell: ${quote(options)}}`);
    }
    return commandService(options);
}

// --- workflows ---

const FIELDS = ["id", "schedule", "schedulingStrategy", "pools", "parameters", "trigger", "constraints", "externalService", "writes", "startTime", "endTime", "catchUp", "batch", "version", "maxRetryCount", "retry", "runsOn", "onLost",
    "waitTimeoutSeconds", "waitTimeoutFrom", "deadline", "timeZone", "daylightSaving", "url", "contacts", "tags", "description"];
const CATCH_UP = ["all", "latest", "skip"];
const RETRY_FIELDS = ["count", "delaySeconds", "backoff", "maxDelaySeconds", "jitterPercent", "jitter", "onUnknown"];

/** How often Celos tries again: what is false, as NaN is, and what is negative are taken for 0 there. */
function maxRetryCountOf(value, where) {
    const odd = Number.isNaN(value) || ["number", "string"].includes(typeof value) && Number(value) < 0;
    if (odd) host.warn(`${where} is ${describe(value)}, and is taken for 0, as in Celos: expected a number >= 0`, here(), "odd-value");
    return odd || !value ? 0 : count(value, where);
}

function retryOf(options, where) {
    if (options.retry === undefined) {
        return { count: maxRetryCountOf(options.maxRetryCount, `${where}: maxRetryCount`) };
    }
    if (options.maxRetryCount !== undefined) {
        refuse(`${where}: both maxRetryCount and retry are given: expected one of them (retry.count is the same as maxRetryCount)`, "conflicting-options");
    }
    const given = object(options.retry, `${where}: retry`, 'an object such as {count: 3, delaySeconds: 60}');
    known(given, RETRY_FIELDS, `${where}: retry`);
    if (given.count === undefined) refuse(`${where}: retry.count is missing: expected a number such as 3`, "missing-option");
    const retry = { count: count(given.count, `${where}: retry.count`) };
    const at = (field) => `${where}: retry.${field}`;
    if (given.delaySeconds !== undefined) retry.delaySeconds = count(given.delaySeconds, at("delaySeconds"));
    if (given.backoff !== undefined) retry.growth = among(given.backoff, at("backoff"), ["fixed", "exponential"]);
    if (given.maxDelaySeconds !== undefined) retry.capSeconds = count(given.maxDelaySeconds, at("maxDelaySeconds"));
    if (given.jitter !== undefined && given.jitterPercent !== undefined) {
        refuse(`${where}: retry: both jitter and jitterPercent are given: expected one of them`, "conflicting-options");
    }
    if (given.jitterPercent !== undefined) retry.jitterPercent = count(given.jitterPercent, at("jitterPercent"), 0, 100);
    if (given.jitter !== undefined) {
        if (!(typeof given.jitter === "number" && given.jitter >= 0 && given.jitter <= 1)) {
            refuse(`${at("jitter")}: expected a share from 0 to 1, such as 0.2, not ${describe(given.jitter)}`);
        }
        retry.jitterPercent = Math.round(given.jitter * 100);
    }
    if (given.onUnknown !== undefined) retry.onUnknown = among(given.onUnknown, at("onUnknown"), ["again", "retry", "fail"]);
    return retry;
}

/** A policy that says what follows an unknown outcome: `usual` unless it does. Only a command is known to have ended before it is done again. */
function withUnknown(retry, job, usual, where) {
    if (retry.onUnknown === "again" && job.executor !== "command") {
        refuse(`${where}: retry.onUnknown: "again" is for commands, because what ${job.executor} has begun may go on: expected "retry" or "fail"`, "conflicting-options");
    }
    return { ...retry, onUnknown: retry.onUnknown || usual };
}

/** What follows an unknown outcome in Kelos's own builders: a command is done again, unless its `onLost` is "end". */
function usualOf(job) {
    if (job.executor !== "command") return "retry";
    return job.onLost === "end" ? "fail" : "again";
}

function contactsOf(contacts, where) {
    if (!Array.isArray(contacts)) refuse(`${where}: expected an array such as [{name: "Ann", email: "ann@example.org"}], not ${describe(contacts)}`);
    return contacts.map((given, n) => {
        object(given, `${where}[${n}]`, 'an object such as {name: "Ann", email: "ann@example.org"}');
        known(given, ["name", "email"], `${where}[${n}]`);
        const part = (field) => (given[field] === undefined || given[field] === null ? null : text(given[field], `${where}[${n}].${field}`));
        const contact = { name: part("name"), email: part("email") };
        if (contact.email !== null && /\s/.test(contact.email)) {
            refuse(`${where}[${n}].email: expected an address such as "ann@example.org", not ${quote(contact.email)}`);
        }
        return contact;
    });
}

function aboutOf(options, where) {
    const about = {};
    const given = (field) => options[field] !== undefined && options[field] !== null;
    if (given("description")) about.description = text(options.description, `${where}: description`);
    if (given("url")) {
        about.url = text(options.url, `${where}: url`, "https://example.org/wiki");
        if (!/^[A-Za-z][A-Za-z0-9+.-]*:\S+$/.test(about.url)) {
            refuse(`${where}: url: expected a URL such as "https://example.org/wiki", not ${quote(about.url)}`);
        }
    }
    if (given("contacts")) about.contacts = contactsOf(options.contacts, `${where}: contacts`);
    if (given("tags")) {
        if (!Array.isArray(options.tags)) refuse(`${where}: tags: expected an array of strings, not ${describe(options.tags)}`);
        about.tags = options.tags.map((tag, n) => text(tag, `${where}: tags[${n}]`));
    }
    return about;
}

/** The pools whose permits a run takes, all of them or none. */
function poolsOf(pools, where) {
    if (pools === undefined || pools === null) return [];
    if (!Array.isArray(pools)) refuse(`${where}: expected an array such as [celos.pool("spark", 4)], not ${describe(pools)}`);
    const seen = new Set();
    return pools.map((given, n) => {
        const use = Made.tree("pool", given, `${where}[${n}]`);
        if (seen.has(use.pool)) refuse(`${where}[${n}]: pool ${quote(use.pool)} is there already: expected each pool once`, "conflicting-options");
        seen.add(use.pool);
        return use;
    });
}

/** The arguments that runs expect: by name a default, or what else is said of one. */
function parametersOf(parameters, where) {
    if (parameters === undefined || parameters === null) return undefined;
    const read = jsonOf(object(parameters, where, 'an object such as {day: {type: "date"}, rows: 1000}'), where);
    agreed(host.parameters(JSON.stringify(read)), where);
    return read;
}

/** The paths that the runs of a workflow write: templates, as triggers ask for them. */
function writtenPathsOf(paths, where) {
    const such = '["/data/${year}-${month}-${day}/orders"]';
    if (paths === undefined || paths === null) return [];
    if (!Array.isArray(paths)) refuse(`${where}: expected an array such as ${such}, not ${describe(paths)}`);
    return paths.map((given, n) => {
        const at = `${where}[${n}]`;
        const path = text(given, at, "/data/${year}-${month}-${day}/orders");
        agreed(host.writtenPath(path), at);
        return path;
    });
}

/** A value as it is when added to a text, where that can be. */
function inWords(value) {
    try {
        return `${value}`;
    } catch {
        return describe(value);
    }
}

function startTimeOf(value, where) {
    if (!value) return undefined;
    if (ScheduledTime.is(value)) return ScheduledTime.ms(value);
    if (DateTime.is(value)) return value.getMillis();
    if (value instanceof RealDate && !Number.isNaN(value.getTime())) return value.getTime();
    return agreed(host.instant(text(value, where, "2015-09-13T00:00Z")), where, "bad-time");
}

/** How long a slot may wait. Celos takes what is negative, and then no slot waits longer than until it is looked at, as with 0. */
function waitTimeoutOf(value, where) {
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !Number.isSafeInteger(Math.trunc(value))) {
        const more = `: expected seconds >= 0, not ${describe(value)}`;
        if (typeof value === "number") refuse(`${where} must be a number${more}`);
        refuseInWords(`waitTimeoutSeconds must be a number: ${inWords(value)}`, ` (${where}${more})`);
    }
    if (value < 0) host.warn(`${where} is ${value}, and is taken for 0: expected seconds >= 0`, here(), "odd-value");
    return Math.max(0, Math.trunc(value));
}

/** Whether a wait timeout counts from the time of a slot, as in Celos, or from when the slot could first have gone. */
function waitTimeoutFromOf(options, where) {
    if (options.waitTimeoutFrom === undefined) return undefined;
    if (options.waitTimeoutSeconds === undefined) {
        refuse(`${where}: waitTimeoutFrom says from when waitTimeoutSeconds counts, which is missing`, "missing-option");
    }
    return among(options.waitTimeoutFrom, `${where}: waitTimeoutFrom`, ["time", "opening"]);
}

/** A schedule with the zone of the workflow, where it has none of its own. */
function zonedSchedule(own, options, where) {
    const zone = zoneOf(options, where);
    if (Object.keys(zone).length === 0) return own;
    if (own.dependent !== undefined) {
        refuse(`${where}: timeZone and daylightSaving have no effect on a dependent schedule: set them on workflow ${quote(own.dependent)}`, "conflicting-options");
    }
    if (own.calendar !== undefined) {
        refuse(`${where}: timeZone and daylightSaving have no effect on a calendar: expected the zone in its own options, as in celos.calendar("daily", {timeZone: "Europe/Berlin"})`, "conflicting-options");
    }
    return { ...zone, ...own };
}

function catchUpOf(value, where) {
    return value === undefined ? undefined : among(value, `${where}: catchUp`, CATCH_UP);
}

/** Adjacent slots that one run serves. */
function batchOf(value, where) {
    if (value === undefined) return undefined;
    known(object(value, where, 'an object such as {size: 6, delay: "10m"}'), ["size", "delay"], where);
    if (value.size === undefined) refuse(`${where}: size is missing: expected a number such as 6`, "missing-option");
    const delay = value.delay === undefined ? 0 : shift(value.delay, `${where}: delay`);
    if (delay < 0) refuse(`${where}: delay: expected a length of time such as "10m", not ${describe(value.delay)}`);
    return { size: count(value.size, `${where}: size`, 2, 1000), delayMillis: delay * 1000 };
}

function versionOf(value, where) {
    if (value === undefined) return undefined;
    if (typeof value !== "string") refuse(`${where}: expected a text such as "1.4", not ${describe(value)}`);
    agreed(host.version(value), where);
    return value;
}

/** Executors whose runs workers may do. */
const OF_WORKERS = ["command", "spark"];
/** The most labels of a worker. */
const MOST_LABELS = 32;

/** Labels of workers. */
function labelsOf(value, where) {
    const such = 'labels of workers such as ["gpu", "eu"]';
    const labels = typeof value === "string" ? [value] : value;
    if (!Array.isArray(labels) || labels.length === 0 || labels.length > MOST_LABELS) {
        refuse(`${where}: expected 1 to ${MOST_LABELS} ${such}, not ${Array.isArray(labels) ? `${labels.length} of them` : describe(value)}`);
    }
    for (const [n, label] of labels.entries()) {
        if (typeof label !== "string" || !/^[A-Za-z0-9_.\/=-]{1,63}$/.test(label)) {
            refuse(`${where}[${n}]: expected 1 to 63 letters, digits, _, ., -, / or =, as in ${such}, not ${describe(label)}`);
        }
    }
    return [...new Set(labels)].sort();
}

/** What happens to a run whose worker is lost. */
function onLostOf(value, where) {
    if (["retry", "end"].includes(value)) return value;
    const wait = typeof value === "string" && /^wait (\d+[smhdw])$/.exec(value);
    if (!wait) refuse(`${where}: expected "retry", "end" or a wait such as "wait 30m", not ${describe(value)}`);
    return { wait: shift(wait[1], where) };
}

/** A job with the workers that may run it. */
function withWorkers(job, options, where) {
    const field = ["runsOn", "onLost"].find((one) => options[one] !== undefined);
    if (field === undefined) return job;
    if (!OF_WORKERS.includes(job.executor)) {
        refuse(`${where}: ${field} is about workers, which run commands and Spark: the job is ${job.executor}, which the server does itself`, "conflicting-options");
    }
    const own = { ...job };
    if (options.runsOn !== undefined) own.runsOn = labelsOf(options.runsOn, `${where}: runsOn`);
    if (options.onLost !== undefined) own.onLost = onLostOf(options.onLost, `${where}: onLost`);
    return own;
}

/** What both builders of workflows read in the same way. */
function draftOf(options, where) {
    return {
        pools: poolsOf(options.pools, `${where}: pools`),
        parameters: parametersOf(options.parameters, `${where}: parameters`),
        constraints: constraintsOf(options.constraints, `${where}: constraints`, options.timeZone),
        writes: writtenPathsOf(options.writes, `${where}: writes`),
        startTime: startTimeOf(options.startTime, `${where}: startTime`),
        endTime: startTimeOf(options.endTime, `${where}: endTime`),
        batch: batchOf(options.batch, `${where}: batch`),
        version: versionOf(options.version, `${where}: version`),
        deadline: deadlineOf(options.deadline, `${where}: deadline`, options.timeZone),
        retry: retryOf(options, where),
        about: aboutOf(options, where),
    };
}

/** Hands a workflow to the host. */
function enter(call, draft) {
    const problem = host.define(JSON.stringify(draft), here(), call);
    if (Array.isArray(problem)) refuse(problem[1], problem[0]);
}

/** The tree of a field that has to be there. */
function required(options, field, kind, where) {
    if (options[field] !== undefined && options[field] !== null) return Made.tree(kind, options[field], `${where}: ${field}`);
    const like = host.closest(field, Object.keys(options).filter((name) => !FIELDS.includes(name)));
    refuse(`${where}: ${field} is ${field in options ? describe(options[field]) : "missing"}: expected ${EXAMPLES[kind]}` +
        (like ? ` (there is a field '${like}')` : ""), field in options ? "bad-argument" : "missing-option");
}

/** The stack at the latest `celos.defineWorkflow` that was not called yet. */
let looked;

function defineWorkflow(options) {
    spot = host.same(looked, new Error().stack);
    looked = undefined;
    try {
        define(options);
    } finally {
        spot = undefined;
    }
}

function define(options) {
    object(options, "celos.defineWorkflow", "an object with the fields id, schedule, schedulingStrategy, trigger and externalService");
    known(options, FIELDS, "celos.defineWorkflow");
    if (typeof options.id !== "string") {
        refuseInWords(`Workflow ID must be a string: ${inWords(options.id)}`,
            options.id === undefined ? " (the field id is missing)" : "");
    }
    agreed(host.id(options.id), "celos.defineWorkflow: id", "bad-name");
    const where = `celos.defineWorkflow ${quote(options.id)}`;
    const draft = {
        id: options.id,
        schedule: zonedSchedule(required(options, "schedule", "schedule", where), options, where),
        concurrency: required(options, "schedulingStrategy", "scheduling strategy", where),
        trigger: zoned(required(options, "trigger", "trigger", where), options.timeZone),
        job: withWorkers(required(options, "externalService", "external service", where), options, where),
        ...draftOf(options, where),
        catchUp: catchUpOf(options.catchUp, where),
        waitTimeoutSeconds: waitTimeoutOf(options.waitTimeoutSeconds, `${where}: waitTimeoutSeconds`),
        waitTimeoutFrom: waitTimeoutFromOf(options, where),
    };
    // As in Celos, what is neither running nor successful has failed.
    enter("celos.defineWorkflow", { ...draft, retry: withUnknown(draft.retry, draft.job, "retry", where) });
}

// --- the `celos` object ---

const api = {
    ...eventApi,
    defineWorkflow,
    addWorkflow: defineWorkflow,
    defineJobGraph,
    importDefaults,
    hourlySchedule: () => new Made("schedule", "hourlySchedule", { expression: NAMED_SCHEDULES.hourly }),
    minutelySchedule: () => new Made("schedule", "minutelySchedule", { expression: NAMED_SCHEDULES.minutely }),
    cronSchedule,
    dependentSchedule,
    calendar,
    serialSchedulingStrategy,
    pool,
    rate,
    alwaysTrigger: () => new Made("trigger", "alwaysTrigger", { type: "always" }),
    hdfsCheckTrigger,
    pathTrigger,
    fileCheckTrigger,
    successTrigger,
    covers,
    jobTrigger,
    andTrigger: (...triggers) => combined("andTrigger", "and", triggers),
    orTrigger: (...triggers) => combined("orTrigger", "or", triggers),
    notTrigger,
    delayTrigger,
    offsetTrigger,
    functionTrigger,
    partitionsTrigger,
    programStatusTrigger,
    cronTrigger: (cron, zone) => firedTrigger("cronTrigger", cron, zone),
    signalTrigger,
    concurrency: (runs) => concurrency(runs),
    delay: (amount, unit) => delay(amount, unit),
    timeWindow: (start, end, zone) => timeWindow(start, end, zone),
    sinceLastRun: (amount, unit) => sinceLastRun(amount, unit),
    oozieExternalService,
    commandExternalService,
    httpExternalService: (options) => httpService(options),
    sparkExternalService: (options) => sparkService(options),
    externalService: ownService,
    makePropertiesGen,
    mergeProperties,
    hdfsCheck,
    hdfsPath,
    databaseName: (name) => text(name, "celos.databaseName: name") + host.suffix,
    isRunningInTestMode: () => host.tested,
    replaceTimeVariables,
    getRegister,
    forEachRegister,
};

const GONE = {
    workflow: "use kelos.workflow",
    commandTrigger: "use celos.functionTrigger or celos.fileCheckTrigger",
    putRegister: "registers are written through the HTTP API",
    deleteRegister: "registers are deleted through the HTTP API",
};

/** Functions whose problems stand where their call begins. */
const DEFINES = ["defineWorkflow", "addWorkflow", "defineJobGraph", ...BEGUN];

const celos = new Proxy(api, {
    get(target, name) {
        if (DEFINES.includes(name)) looked = new Error().stack;
        if (name in target || typeof name === "symbol" || name === "then" || name === "toJSON") return target[name];
        const close = host.closest(name, Object.keys(target));
        const advice = GONE[name] || (close ? `did you mean '${close}'?` : `it has ${Object.keys(target).join(", ")}`);
        refuse(`celos has no function '${name}'; ${advice}`, "unknown-function");
    },
});

/** Opens the script's world. */
export function install(handed) {
    host = handed;
    globalThis.celos = celos;
    globalThis.importDefaults = importDefaults;
    installTime();
    installEvents();
    globalThis.kelos = ownObject(ownApi, { test: "tests are defined in files of the folder tests, such as tests/first.test.js" });
}

/** What reads what a function of the slot returned, by the kind of the function. */
const READERS = {
    oozie: ["celos.oozieExternalService", textProperties],
    command: ["celos.commandExternalService", commandSettings],
    http: ["celos.httpExternalService", httpSettings],
    spark: ["celos.sparkExternalService", sparkSettings],
    kafka: ["kelos.kafkaMessage", kafkaSettings],
};

/** Calls a function that a script left behind; the answer is JSON. `job` is what it is asked about, where that is a job. */
export function call(index, workflow, ms, now, job) {
    const { fn, kind } = functions[index];
    randomState = (0x2545f491 ^ ms) | 1;
    const asked = job === undefined ? new SlotID(workflow, ScheduledTime.at(ms)) : JSON.parse(job);
    const answered = job === undefined ? undefined : callAboutJob(fn, kind, asked);
    if (answered !== undefined) return answered;
    const answer = fn(job === undefined ? asked : asked.ids, ScheduledTime.at(now));
    if (kind === "trigger") {
        if (answer === true || answer === false || answer === "never") return JSON.stringify(answer);
        refuse(`the function of celos.functionTrigger has to return true, false or "never", not ${describe(answer)}`, "bad-answer");
    }
    const [where, read] = READERS[kind];
    return JSON.stringify(read(object(answer, `${where}: what the function returned`), where));
}
