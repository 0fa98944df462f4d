// The scripts' world: builds plain data out of what a script says, and refuses what makes no sense
// at the place where it stands. Evaluated once in the fresh realm of each file; `host` is what Rust
// hands in. Everything here runs in the script's own realm: a script that breaks a built-in object
// breaks it for itself only.

let host;

/** Functions that stay in the script, by index: { fn, kind }. */
const functions = [];

/** No trigger is nested deeper, or has more parts, than this. */
const DEEPEST = 50;
const LARGEST = 10000;

/** The stack at `celos.defineWorkflow`: the engine reports a call at the end of its arguments. */
let spot;

function refuse(message, code = "bad-argument") {
    const error = new Error(message);
    error.kelosCode = code;
    if (spot !== undefined) error.stack = spot;
    throw error;
}

/**
 * Throws a text as Celos does: scripts compare such texts. What a person is told besides, and the place, the host keeps for
 * the case that nobody catches it.
 */
function refuseInWords(text, more) {
    host.thrown(text, `${text}${more}`, here());
    throw text;
}

/** The stack that a warning or a definition belongs to. */
function here() {
    return spot === undefined ? new Error().stack : spot;
}

function quote(text) {
    return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
}

/** A value in words, for "expected …, not …". */
function describe(value) {
    if (typeof value === "string") return quote(value);
    if (typeof value === "function") return "a function";
    if (typeof value === "symbol") return "a symbol";
    if (value === null || typeof value !== "object") return String(value);
    if (Made.is(value)) return Made.words(value);
    if (Array.isArray(value)) return "an array";
    if (value instanceof Promise) return "a promise (is the function async?)";
    if (ScheduledTime.is(value)) return "a ScheduledTime";
    if (SlotID.is(value)) return "a SlotID";
    if (WorkflowID.is(value)) return "a WorkflowID";
    return "an object";
}

const EXAMPLES = {
    trigger: "a trigger such as celos.alwaysTrigger()",
    schedule: "a schedule such as celos.hourlySchedule()",
    "scheduling strategy": "a scheduling strategy such as celos.serialSchedulingStrategy()",
    constraint: "a constraint such as celos.concurrency(1)",
    pool: 'a pool such as celos.pool("spark", 4)',
    "external service": "an external service such as celos.oozieExternalService({...})",
};

/** That a value is not of a kind, in words. */
function expected(kind, value, where) {
    const forgotten = typeof value === "function" && Object.keys(api).find((name) => api[name] === value);
    const advice = forgotten ? ` (is there a () missing after celos.${forgotten}?)` : "";
    return `${where}: expected ${EXAMPLES[kind]}, not ${describe(value)}${advice}`;
}

/** What a function of `celos` makes: a tree of plain data that knows its kind. */
class Made {
    #kind;
    #maker;
    #tree;
    #depth;
    #size;

    constructor(kind, maker, tree, nested = []) {
        this.#kind = kind;
        this.#maker = maker;
        this.#tree = tree;
        this.#depth = 1 + nested.reduce((depth, one) => Math.max(depth, one.#depth), 0);
        this.#size = 1 + nested.reduce((size, one) => size + one.#size, 0);
        if (this.#depth > DEEPEST) refuse(`celos.${maker}: triggers are nested deeper than ${DEEPEST} levels`, "too-complex");
        if (this.#size > LARGEST) refuse(`celos.${maker}: the trigger has more than ${LARGEST} parts`, "too-complex");
        Object.freeze(this);
    }

    static is(value) {
        return value !== null && typeof value === "object" && #kind in value;
    }

    static words(made) {
        return `a ${made.#kind} (celos.${made.#maker})`.replace("a external", "an external");
    }

    /** The tree of a value of that kind, or a refusal. */
    static tree(kind, value, where) {
        if (Made.is(value) && value.#kind === kind) return value.#tree;
        refuse(expected(kind, value, where));
    }

    toString() {
        return `[${this.#kind} celos.${this.#maker}]`;
    }

    toJSON() {
        return this.#tree;
    }
}

/** A text that is not empty. */
function text(value, where, example) {
    if (typeof value !== "string" || value === "") {
        const such = example === undefined ? "a string" : `a string such as ${JSON.stringify(example)}`;
        refuse(`${where}: expected ${such}, not ${describe(value)}`);
    }
    return value;
}

/** An object of named values; arrays, functions and what `celos` makes are none. */
function object(value, where, example = "an object") {
    if (value === null || typeof value !== "object" || Array.isArray(value) || Made.is(value)) {
        refuse(`${where}: expected ${example}, not ${describe(value)}`);
    }
    return value;
}

function seconds(value, where) {
    if (typeof value !== "number" || !Number.isSafeInteger(Math.trunc(value))) {
        refuse(`${where}: expected a number of seconds, not ${describe(value)}`);
    }
    return Math.trunc(value);
}

/** A number from 0 (or `least`) to `most`; a text of digits will do, a fraction is cut. */
function count(value, where, least = 0, most = 2147483647) {
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    const cut = typeof number === "number" ? Math.trunc(number) : NaN;
    if (!(cut >= least && cut <= most)) {
        refuse(`${where}: expected a number >= ${least}${most < 2147483647 ? ` and <= ${most}` : ""}, not ${describe(value)}`);
    }
    return cut;
}

/** A number, or a text of digits as one. */
function numberOf(value, where) {
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (typeof number !== "number" || Number.isNaN(number)) refuse(`${where}: expected a number >= 0, not ${describe(value)}`);
    return number;
}

function among(value, where, words) {
    if (!words.includes(value)) {
        refuse(`${where}: expected ${words.map((word) => `"${word}"`).join(" or ")}, not ${describe(value)}`);
    }
    return value;
}

/** Reports fields that nobody reads: an error where a known one is certainly meant, else a warning. */
function known(options, fields, where) {
    for (const field of Object.keys(options)) {
        if (fields.includes(field)) continue;
        const meant = host.mistyped(field, fields);
        if (meant) {
            host.reportField(`${where}: unknown field '${field}'; did you mean '${meant}'?`, here(), "unknown-option", field, true);
            continue;
        }
        const close = host.closest(field, fields);
        const advice = close ? `did you mean '${close}'?` : `known fields: ${fields.join(", ")}`;
        host.reportField(`${where}: unknown field '${field}' is ignored; ${advice}`, here(), "unknown-option", field, false);
    }
}

/** Refuses with the host's words, where it has any: a text, of which the caller knows the kind, or a code and a text. */
function agreed(problem, where, code) {
    if (typeof problem === "string") refuse(`${where}: ${problem}`, code);
    if (Array.isArray(problem)) refuse(`${where}: ${problem[1]}`, problem[0]);
    return problem;
}

function workflowId(value, where) {
    const id = typeof value === "number" || WorkflowID.is(value) ? String(value) : text(value, where, "my-workflow");
    agreed(host.id(id), where, "bad-name");
    return id;
}

/** Puts a function aside and makes the reference that stands for it in the data. */
function keep(fn, kind, where) {
    if (Object.prototype.toString.call(fn) === "[object AsyncFunction]") {
        refuse(`${where}: expected a plain function, not an async one: its answer is needed at once`);
    }
    const digest = host.keep(Function.prototype.toString.call(fn), new Error().stack);
    functions.push({ fn, kind });
    return { file: host.file, index: functions.length - 1, digest };
}

// --- variables of the script ---

// Each is read by name, because a `let` or `const` of a script is no property of the global object.
const VARIABLES = {
    CELOS_DEFAULT_HDFS: () => (typeof CELOS_DEFAULT_HDFS === "undefined" ? undefined : CELOS_DEFAULT_HDFS),
    CELOS_DEFAULT_OOZIE: () => (typeof CELOS_DEFAULT_OOZIE === "undefined" ? undefined : CELOS_DEFAULT_OOZIE),
    CELOS_DEFAULT_OOZIE_PROPERTIES: () =>
        (typeof CELOS_DEFAULT_OOZIE_PROPERTIES === "undefined" ? undefined : CELOS_DEFAULT_OOZIE_PROPERTIES),
};

/** The value of a text variable; undefined where it is not set. */
function variable(name) {
    const value = VARIABLES[name]();
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string") refuse(`${name}: expected a string, not ${describe(value)}`);
    return value;
}

function defaultProperties() {
    const value = VARIABLES.CELOS_DEFAULT_OOZIE_PROPERTIES();
    if (value === undefined || value === null) return {};
    if (typeof value === "object" && !Array.isArray(value)) return value;
    host.warn(`CELOS_DEFAULT_OOZIE_PROPERTIES is ignored: expected an object, not ${describe(value)}`, new Error().stack, "odd-value");
    return {};
}

// --- triggers ---

const hasScheme = (path) => /^[A-Za-z][A-Za-z0-9+.-]*:/.test(path);

/** The file system of a path: the argument, or the variable; "" where the path names its own. */
function fileSystem(name, path, fs) {
    if (fs !== undefined && fs !== null && typeof fs !== "string") {
        refuse(`celos.${name}: fs: expected a string such as "hdfs://nameservice1", not ${describe(fs)}`);
    }
    const base = fs || variable("CELOS_DEFAULT_HDFS");
    if (base !== undefined) return base;
    if (hasScheme(path)) return "";
    refuseInWords("Undefined fs in hdfsCheckTrigger and CELOS_DEFAULT_HDFS not set", `: expected a file system such as "hdfs://nameservice1", ` +
        `as the second argument or in the variable`);
}

function pathOf(name, path) {
    const such = ': expected a string such as "/logs/${year}-${month}-${day}/_READY"';
    if (!path && name.startsWith("hdfs")) refuseInWords(`Undefined path in ${name === "hdfsPath" ? name : "hdfsCheckTrigger"}`, such);
    if (!path) refuse(`Undefined path in ${name}${such}`);
    return text(path, `celos.${name}: path`, "/logs/${year}-${month}-${day}/_READY");
}

const CONDITIONS = ["glob", "minCount", "minBytes", "minAgeSeconds"];

/** What must hold of a path beside that it is there; a bare `undefined` where nothing must. */
function conditionsOf(name, conditions) {
    if (conditions === undefined || conditions === null) return undefined;
    const where = `celos.${name}: conditions`;
    object(conditions, where, "an object such as {minBytes: 1024, minAgeSeconds: 60}");
    for (const field of Object.keys(conditions)) {
        if (CONDITIONS.includes(field)) continue;
        // A condition that nobody checks would let slots go too early, so this is no mere warning.
        const close = host.closest(field, CONDITIONS);
        refuse(`${where}: unknown condition '${field}'; ` +
            (close ? `did you mean '${close}'?` : `there are: ${CONDITIONS.join(", ")}`), "unknown-option");
    }
    const { glob, minCount, minBytes, minAgeSeconds } = conditions;
    const checked = {};
    if (glob !== undefined) checked.glob = globOf(glob, `${where}.glob`);
    if (minCount !== undefined) checked.minCount = count(minCount, `${where}.minCount`, 1);
    if (minBytes !== undefined) checked.minBytes = count(minBytes, `${where}.minBytes`, 1, Number.MAX_SAFE_INTEGER);
    if (minAgeSeconds !== undefined) checked.minAgeSeconds = count(minAgeSeconds, `${where}.minAgeSeconds`);
    return Object.keys(checked).length === 0 ? undefined : checked;
}

function globOf(glob, where) {
    text(glob, where, "part-*");
    if (glob.includes("/")) refuse(`${where}: expected a pattern of names in one folder, such as "part-*", not ${quote(glob)}`);
    return glob;
}

function hdfsCheckTrigger(path, fs, conditions) {
    pathOf("hdfsCheckTrigger", path);
    const base = fileSystem("hdfsCheckTrigger", path, fs);
    const tree = { type: "path", system: "hdfs", path, base, conditions: conditionsOf("hdfsCheckTrigger", conditions) };
    return new Made("trigger", "hdfsCheckTrigger", tree);
}

function pathTrigger(uri, conditions) {
    pathOf("pathTrigger", uri);
    if (!hasScheme(uri)) {
        refuse(`celos.pathTrigger: uri: expected a URI such as "s3://bucket/in/\${year}/_READY", not ${quote(uri)}; ` +
            `for a path on the server's own disk use celos.fileCheckTrigger`);
    }
    const tree = { type: "path", system: "any", path: uri, base: "", conditions: conditionsOf("pathTrigger", conditions) };
    return new Made("trigger", "pathTrigger", tree);
}

function fileCheckTrigger(path, conditions) {
    pathOf("fileCheckTrigger", path);
    if (hasScheme(path) && !/^file:/i.test(path)) {
        refuse(`celos.fileCheckTrigger: path: expected a path on the server's own disk, such as "/data/_READY" or "data/_READY", ` +
            `not ${quote(path)}; for other file systems use celos.pathTrigger`);
    }
    // A relative path is looked for where the server works, as commands do.
    const named = path.startsWith("/") || hasScheme(path) ? path : `file:${path.replace(/%/g, "%25")}`;
    const wanted = conditionsOf("fileCheckTrigger", conditions);
    const tree = { type: "path", system: "local", path: named, base: "file:///", conditions: wanted };
    return new Made("trigger", "fileCheckTrigger", tree);
}

function combined(maker, type, values) {
    const triggers = values.map((value, n) => Made.tree("trigger", value, `celos.${maker}: argument ${n + 1}`));
    return new Made("trigger", maker, { type, triggers }, values);
}

function notTrigger(trigger) {
    if (!trigger) refuseInWords("Undefined sub trigger", `: ${expected("trigger", trigger, "celos.notTrigger")}`);
    const tree = Made.tree("trigger", trigger, "celos.notTrigger");
    return new Made("trigger", "notTrigger", { type: "not", trigger: tree }, [trigger]);
}

function offsetTrigger(offset, trigger) {
    if (typeof offset !== "number") undefinedSeconds("offsetTrigger", offset);
    if (!trigger) refuseInWords("Undefined trigger", `: ${expected("trigger", trigger, "celos.offsetTrigger: trigger")}`);
    const by = seconds(offset, "celos.offsetTrigger: seconds");
    const tree = Made.tree("trigger", trigger, "celos.offsetTrigger: trigger");
    return new Made("trigger", "offsetTrigger", { type: "offset", seconds: by, trigger: tree }, [trigger]);
}

function undefinedSeconds(name, value) {
    refuseInWords("Undefined seconds", `: celos.${name}: seconds: expected a number of seconds, not ${describe(value)}`);
}

function delayTrigger(delay) {
    if (typeof delay !== "number") undefinedSeconds("delayTrigger", delay);
    return new Made("trigger", "delayTrigger", { type: "delay", seconds: seconds(delay, "celos.delayTrigger: seconds") });
}

function successTrigger(workflowID) {
    if (!workflowID) {
        refuseInWords("Undefined workflow name in success trigger", `: celos.successTrigger: workflowID: expected a string such as ` +
            `"my-workflow", not ${describe(workflowID)}`);
    }
    const workflow = workflowId(workflowID, "celos.successTrigger: workflowID");
    return new Made("trigger", "successTrigger", { type: "success", workflow });
}

/** A length of time in seconds: a number of them, or a text such as "-1d", "90m" or "2h". */
function shift(value, where) {
    if (typeof value === "number") return seconds(value, where);
    const parts = typeof value === "string" ? /^(-?)(\d+)([smhdw])$/.exec(value) : null;
    if (!parts) refuse(`${where}: expected a length of time such as "-1d", "90m" or a number of seconds, not ${describe(value)}`);
    const length = Number(parts[2]) * { s: 1, m: 60, h: 3600, d: 86400, w: 604800 }[parts[3]];
    return seconds(parts[1] ? -length : length, where);
}

/** All periods of another workflow that intersect the slot's own. */
function covers(workflowID, options = {}) {
    const workflow = workflowId(workflowID, "celos.covers: workflowID");
    object(options, "celos.covers: options", 'an object such as {from: "-1h"}');
    known(options, ["from", "to"], "celos.covers");
    const { from = 0, to = 0 } = options;
    return new Made("trigger", "covers", { type: "covers", workflow, from: shift(from, "celos.covers: from"), to: shift(to, "celos.covers: to") });
}

function functionTrigger(fn) {
    if (typeof fn !== "function") {
        refuse(`celos.functionTrigger: expected a function of a slot and the present time, not ${describe(fn)}`);
    }
    return new Made("trigger", "functionTrigger", { type: "function", function: keep(fn, "trigger", "celos.functionTrigger") });
}

// --- schedules and strategies ---

/** Schedules that have names. */
const NAMED_SCHEDULES = { minutely: "0 * * * * ?", hourly: "0 0 * * * ?", daily: "0 0 0 * * ?" };

const ZONE_FIELDS = ["timeZone", "daylightSaving"];

/** The zone and the daylight-saving policy of a schedule or a workflow. */
function zoneOf(options, where) {
    const zone = {};
    if (options.timeZone !== undefined) {
        zone.zone = text(options.timeZone, `${where}: timeZone`, "Europe/Berlin");
        agreed(host.zone(zone.zone), `${where}: timeZone`, "unknown-zone");
    }
    if (options.daylightSaving !== undefined) {
        const policy = object(options.daylightSaving, `${where}: daylightSaving`, 'an object such as {gap: "skip", fold: "first"}');
        known(policy, ["gap", "fold"], `${where}: daylightSaving`);
        if (policy.gap !== undefined) zone.gap = among(policy.gap, `${where}: daylightSaving.gap`, ["shift", "skip"]);
        if (policy.fold !== undefined) {
            zone.fold = among(policy.fold, `${where}: daylightSaving.fold`, ["auto", "first", "second", "both"]);
        }
    }
    return zone;
}

function cronSchedule(expression, options = {}) {
    if (!expression) refuseInWords("Undefined cron expression", ': expected a string such as "0 15 10 * * ?"');
    text(expression, "celos.cronSchedule: expression", "0 15 10 * * ?");
    agreed(host.cron(expression), "celos.cronSchedule", "bad-cron");
    object(options, "celos.cronSchedule: options", 'an object such as {timeZone: "Europe/Berlin"}');
    known(options, ZONE_FIELDS, "celos.cronSchedule");
    return new Made("schedule", "cronSchedule", { expression, ...zoneOf(options, "celos.cronSchedule") });
}

const PERIODS = ["hourly", "daily", "weekly", "monthly", "business", "dates"];

/** Dates: a list, or the name of a text in the defaults folder with a date on each line. */
function datesOf(value, where) {
    if (typeof value === "string") {
        const dates = host.dates(value);
        if (!Array.isArray(dates)) refuse(`${where}: ${dates}`);
        return dates;
    }
    if (!Array.isArray(value)) refuse(`${where}: expected dates such as ["2026-12-25"], or the name of a .txt file in the defaults folder, not ${describe(value)}`);
    return value.map((date, n) => text(date, `${where}[${n}]`, "2026-12-25"));
}

/** A slot for each period of a calendar, due once the period has ended. */
function calendar(period, options = {}) {
    const where = "celos.calendar";
    const unit = { period: among(period, `${where}: period`, PERIODS) };
    object(options, `${where}: options`, 'an object such as {timeZone: "Europe/Berlin"}');
    known(options, ["timeZone", "hours", "firstDay", "weekend", "holidays", "dates"], where);
    const only = (field, one) => {
        if (options[field] !== undefined && period !== one) {
            refuse(`${where}: ${field} is for ${quote(one)} periods: expected none for ${quote(period)} ones`, "conflicting-options");
        }
        return options[field];
    };
    if (only("hours", "hourly") !== undefined) unit.hours = among(options.hours, `${where}: hours`, [1, 2, 3, 4, 6, 8, 12]);
    if (only("firstDay", "weekly") !== undefined) unit.first = among(options.firstDay, `${where}: firstDay`, DAYS.map((day) => day.toLowerCase()));
    if (only("weekend", "business") !== undefined) {
        if (!Array.isArray(options.weekend)) refuse(`${where}: weekend: expected days such as ["friday", "saturday"], not ${describe(options.weekend)}`);
        unit.weekend = options.weekend.map((day, n) => among(day, `${where}: weekend[${n}]`, DAYS.map((one) => one.toLowerCase())));
    }
    if (only("holidays", "business") !== undefined) unit.holidays = datesOf(options.holidays, `${where}: holidays`);
    if (only("dates", "dates") !== undefined) unit.dates = datesOf(options.dates, `${where}: dates`);
    if (period === "dates" && unit.dates === undefined) refuse(`${where}: dates is missing: expected dates such as ["2026-01-05", "2026-02-02"], or the name of a .txt file in the defaults folder`);
    const { zone } = zoneOf({ timeZone: options.timeZone }, where);
    if (zone !== undefined && period === "hourly") {
        refuse(`${where}: hourly periods are the same in every zone, and count from midnight in UTC: expected no timeZone`, "conflicting-options");
    }
    if (zone !== undefined) unit.zone = zone;
    agreed(host.calendar(JSON.stringify(unit)), where, "bad-argument");
    return new Made("schedule", "calendar", { calendar: unit });
}

function dependentSchedule(workflowID) {
    const dependent = workflowId(workflowID, "celos.dependentSchedule: workflowID");
    return new Made("schedule", "dependentSchedule", { dependent });
}

function serialSchedulingStrategy(concurrency = 1) {
    const where = "celos.serialSchedulingStrategy";
    // Celos takes what lets nothing run, and so does a file that is full of good workflows.
    const slots = count(Math.max(0, numberOf(concurrency, `${where}: concurrency`)), `${where}: concurrency`);
    if (slots === 0) host.warn(`${where}(${describe(concurrency)}): no slot will ever run, as in Celos; pause the workflow instead`, here(), "odd-value");
    return new Made("scheduling strategy", "serialSchedulingStrategy", slots);
}

/** A pool of so many permits, of which each run takes some. */
function pool(name, size, permits = 1) {
    const where = "celos.pool";
    agreed(host.pool(text(name, `${where}: name`, "spark")), `${where}: name`, "bad-name");
    const whole = count(size, `${where} ${quote(name)}: size`, 1);
    const taken = count(permits, `${where} ${quote(name)}: permits`, 1);
    if (taken > whole) {
        refuse(`${where} ${quote(name)}: a run that takes ${taken} permits of a pool that has ${whole} could never go: expected at most ${whole}`);
    }
    return new Made("pool", "pool", { pool: name, size: whole, permits: taken });
}

/** A pool whose permits can be taken so often: `tokens` in so many seconds. Each run takes some, and spends them. */
function rate(name, tokens, seconds, options = {}) {
    const where = "celos.rate";
    agreed(host.pool(text(name, `${where}: name`, "crm-api")), `${where}: name`, "bad-name");
    const named = `${where} ${quote(name)}`;
    const come = count(tokens, `${named}: tokens`, 1);
    const millis = typeof seconds === "number" ? Math.round(seconds * 1000) : NaN;
    if (!(millis >= 1 && millis <= 366 * 24 * 3600000)) {
        refuse(`${named}: seconds: expected a number from 0.001 to ${366 * 24 * 3600}, not ${describe(seconds)}`);
    }
    if (options === null || typeof options !== "object") refuse(`${named}: expected options such as { burst: 10, concurrent: 4 }, not ${describe(options)}`);
    for (const key of Object.keys(options)) {
        if (!["burst", "concurrent", "permits"].includes(key)) {
            refuse(`${named}: unknown option ${quote(key)}: expected burst, concurrent or permits`, "unknown-option");
        }
    }
    const taken = count(options.permits ?? 1, `${named}: permits`, 1);
    const burst = count(options.burst ?? taken, `${named}: burst`, 1, 1000000);
    const size = options.concurrent === undefined ? 4294967295 : count(options.concurrent, `${named}: concurrent`, 1);
    if (taken > burst || taken > size) {
        const most = Math.min(burst, size);
        refuse(`${named}: a run that takes ${taken} at once of a rate that gives ${most} could never go: expected at most ${most}`);
    }
    return new Made("pool", "rate", { pool: name, size, permits: taken, rate: { tokens: come, millis, burst } });
}

// --- the rest of the world ---

function importDefaults(name) {
    return host.importDefaults(text(name, "celos.importDefaults: name", "defaults"));
}

/** The path itself; in a test with real commands, the same path below the test's own folder. */
function hdfsPath(path) {
    pathOf("hdfsPath", path);
    if (host.prefix === "") return path;
    const [, system, rest] = /^([A-Za-z][A-Za-z0-9+.-]*:(?:\/\/[^/]*)?)?(.*)$/s.exec(path);
    return (system || "") + host.prefix + (rest.startsWith("/") ? rest : `/${rest}`);
}

/** The moment that a slot or a time stands for. */
function momentOf(slotID, where) {
    if (!slotID) return host.now();
    if (SlotID.is(slotID)) return ScheduledTime.ms(slotID.getScheduledTime());
    refuseInWords("slotID should be instance of com.collective.celos.SlotID",
        `: ${where}: slotID: expected a SlotID, not ${describe(slotID)}`);
}

function hdfsCheck(path, slotID, fs) {
    pathOf("hdfsCheck", path);
    const answer = host.probe(path, fileSystem("hdfsCheck", path, fs), momentOf(slotID, "celos.hdfsCheck"));
    return agreed(answer, "celos.hdfsCheck", "path-unreadable");
}

const CALENDAR = /\$\{(year|month|day|hour|minute|second)\}/g;

function replaceTimeVariables(template, time) {
    if (typeof template !== "string") {
        refuse(`celos.replaceTimeVariables: expected a string, not ${describe(template)}`);
    }
    if (!ScheduledTime.is(time)) {
        refuse(`celos.replaceTimeVariables: scheduledTime: expected a ScheduledTime, not ${describe(time)}`);
    }
    return template.replace(CALENDAR, (_, name) => time[name]());
}

function getRegister(bucket, key) {
    text(bucket, "celos.getRegister: bucket");
    return registered(host.register(bucket, text(key, "celos.getRegister: key")), "celos.getRegister");
}

function forEachRegister(bucket, fn) {
    text(bucket, "celos.forEachRegister: bucket");
    if (typeof fn !== "function") {
        refuse(`celos.forEachRegister: expected a function of a key and a value, not ${describe(fn)}`);
    }
    for (const [key, value] of registered(host.registers(bucket), "celos.forEachRegister")) fn(key, value);
}

/** The host answers with JSON, or with a problem after an exclamation mark. */
function registered(answer, where) {
    if (answer.startsWith("!")) {
        const end = answer.indexOf(" ");
        refuse(`${where}: ${answer.slice(end + 1)}`, answer.slice(1, end));
    }
    return JSON.parse(answer);
}
