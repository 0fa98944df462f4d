// External services beside Oozie and commands: services that are asked by HTTP, and Spark. A part of one module with
// prelude.js.

/**
 * A function of `celos` that makes jobs of an executor, from options or from a function of the slot that returns them.
 * `read` gives the settings that the options mean; `owner` is the object of the function.
 */
function serviceMaker(executor, maker, read, usage, owner = "celos") {
    const where = `${owner}.${maker}`;
    return (options) => {
        if (typeof options === "function") {
            return new Made("external service", maker, { executor, properties: { function: keep(options, executor, where) } });
        }
        const settings = read(object(options, where, usage), where);
        return new Made("external service", maker, { executor, settings, properties: { fixed: shownProperties(options, where) } });
    };
}

/** Properties that are shown with a job and mean nothing to its executor. */
function shownProperties(options, where) {
    const fixed = {};
    if (options.properties === undefined) return fixed;
    const given = object(options.properties, `${where}: properties`);
    for (const name of Object.keys(given)) fixed[name] = propertyText(given[name], `${where}: properties.${name}`);
    return fixed;
}

/** What can be written as JSON, as plain data. */
function jsonOf(value, where, depth = 0) {
    if (depth > DEEPEST) refuse(`${where}: is nested deeper than ${DEEPEST} levels`, "too-complex");
    if (value === null || typeof value === "boolean" || typeof value === "string") return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (isSecret(value)) return secretOf(value, where);
    if (ScheduledTime.is(value) || SlotID.is(value)) return String(value);
    if (Array.isArray(value)) return value.map((one, n) => jsonOf(one, `${where}[${n}]`, depth + 1));
    if (typeof value !== "object" || Made.is(value)) refuse(`${where}: expected what JSON can hold, not ${describe(value)}`);
    const copy = {};
    for (const name of Object.keys(value)) {
        if (value[name] !== undefined) copy[name] = jsonOf(value[name], `${where}.${name}`, depth + 1);
    }
    return copy;
}

const commandService = serviceMaker("command", "commandExternalService", commandSettings, COMMAND);

// --- HTTP ---

const HTTP_FIELDS = ["url", "method", "headers", "body", "expect", "poll", "cancel", "properties"];
const POLL_FIELDS = ["url", "everySeconds", "done", "failed", "message", "timeoutSeconds"];
const CANCEL_FIELDS = ["url", "method"];
const HTTP = 'an object such as {url: "https://jobs.example.org/v1/jobs", body: {day: "${year}-${month}-${day}"}}, ' +
    "or a function of the slot that returns one";

/** A URL, or where `template` a part of one, without a name and password inside. */
function urlText(value, where, template = false) {
    if (isSecret(value)) refuse(`${where}: a URL is seen by everyone, and can't be a secret; use headers: {Authorization: ${SECRET}}`, "out-of-place");
    const url = text(value, where, "https://jobs.example.org/v1/jobs");
    if (!template && !/^https?:\/\/[^/]/i.test(url)) {
        refuse(`${where}: expected a URL such as "https://jobs.example.org/v1/jobs", not ${quote(url)}`);
    }
    if (/^https?:\/\/[^/?#]*@/i.test(url)) {
        refuse(`${where}: a name or password inside a URL is seen by everyone; use headers: {Authorization: ${SECRET}}`, "secret-in-script");
    }
    return url;
}

function methodText(value, where) {
    const method = text(value, where, "POST");
    if (!/^[A-Za-z]+$/.test(method)) refuse(`${where}: expected a method such as "POST", not ${quote(method)}`);
    return method.toUpperCase();
}

function headersOf(headers, where) {
    const read = {};
    for (const [name, value] of Object.entries(object(headers, where, `an object such as {Authorization: ${SECRET}}`))) {
        if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) refuse(`${where}: ${quote(name)} can't be the name of a header`);
        if (/^idempotency-key$/i.test(name)) refuse(`${where}.${name}: Kelos sets it itself, to the name of the run`);
        if (value !== undefined) read[name] = headerText(name, value, `${where}.${name}`);
    }
    return read;
}

/** The text of a header, or the secret that it comes from. `{env: NAME}` is an older form of one. */
function headerText(name, value, where) {
    if (isSecret(value)) return secretOf(value, where);
    if (value !== null && typeof value === "object" && !ScheduledTime.is(value) && !SlotID.is(value)) {
        object(value, where, `a string, or an object such as ${SECRET}`);
        known(value, value.env === undefined ? ["secret", "prefix"] : ["env", "prefix"], where);
        if (value.env === undefined) refuse(`${where}: expected a string, or an object such as ${SECRET}, not ${describe(value)}`);
        return secretOf({ ...value, env: undefined, secret: `env:${text(value.env, `${where}: env`, "API_TOKEN")}` }, where);
    }
    if (/^(proxy-)?authorization$|^cookie$/i.test(name)) {
        refuse(`${where}: a secret does not belong into a script, where everyone sees it: declare where it is, ` +
            `as in ${SECRET}`, "secret-in-script");
    }
    const header = propertyText(value, where);
    if (/[\r\n\0]/.test(header)) refuse(`${where}: a header has one line only`);
    return header;
}

function expectOf(expect, where) {
    const list = Array.isArray(expect) ? expect : [expect];
    return list.map((one) => {
        if (!/^[1-5](xx|\d\d)$/.test(String(one))) {
            refuse(`${where}: expected statuses such as [200, "3xx"], not ${describe(one)}`);
        }
        return one;
    });
}

/** JSON pointers and what has to stand there. */
function conditionOf(condition, where) {
    const usage = 'an object of JSON pointers such as {"/status": ["SUCCEEDED", "FINISHED"]}';
    const given = Object.entries(object(condition, where, usage));
    if (given.length === 0) refuse(`${where}: expected ${usage}, not an empty one`);
    for (const [pointer] of given) {
        if (!/^(\/|$)/.test(pointer)) refuse(`${where}: ${quote(pointer)}: expected a JSON pointer such as ${quote(`/${pointer}`)}`);
    }
    return Object.fromEntries(given.map(([pointer, value]) => [pointer, jsonOf(value, `${where}: ${quote(pointer)}`)]));
}

function pollOf(poll, where) {
    object(poll, where, 'an object such as {url: "/v1/jobs/${answer/id}", done: {"/status": "SUCCEEDED"}}');
    known(poll, POLL_FIELDS, where);
    if (poll.done === undefined) refuse(`${where}: done is missing: expected a condition such as {"/status": "SUCCEEDED"}`, "missing-option");
    const read = { done: conditionOf(poll.done, `${where}: done`) };
    if (poll.url !== undefined) read.url = urlText(poll.url, `${where}: url`, true);
    if (poll.failed !== undefined) read.failed = conditionOf(poll.failed, `${where}: failed`);
    if (poll.message !== undefined) read.message = text(poll.message, `${where}: message`, "/error/message");
    if (poll.everySeconds !== undefined) read.everySeconds = count(poll.everySeconds, `${where}: everySeconds`, 1);
    if (poll.timeoutSeconds !== undefined) read.timeoutSeconds = count(poll.timeoutSeconds, `${where}: timeoutSeconds`, 1);
    return read;
}

function cancelOf(cancel, where) {
    object(cancel, where, 'an object such as {url: "/v1/jobs/${answer/id}/cancel", method: "POST"}, or {} to DELETE the status');
    known(cancel, CANCEL_FIELDS, where);
    const read = {};
    if (cancel.url !== undefined) read.url = urlText(cancel.url, `${where}: url`, true);
    if (cancel.method !== undefined) read.method = methodText(cancel.method, `${where}: method`);
    return read;
}

function httpSettings(options, where) {
    known(options, HTTP_FIELDS, where);
    const settings = { url: urlText(options.url, `${where}: url`) };
    if (options.method !== undefined) settings.method = methodText(options.method, `${where}: method`);
    if (options.headers !== undefined) settings.headers = headersOf(options.headers, `${where}: headers`);
    if (options.body !== undefined) settings.body = jsonOf(options.body, `${where}: body`);
    if (options.expect !== undefined) settings.expect = expectOf(options.expect, `${where}: expect`);
    if (options.poll !== undefined) settings.poll = pollOf(options.poll, `${where}: poll`);
    if (options.cancel !== undefined) {
        if (options.poll === undefined) refuse(`${where}: cancel has no effect without poll: expected both`, "conflicting-options");
        settings.cancel = cancelOf(options.cancel, `${where}: cancel`);
    }
    return settings;
}

const httpService = serviceMaker("http", "httpExternalService", httpSettings, HTTP);

// --- Spark ---

const SPARK_FIELDS = ["application", "class", "args", "master", "deployMode", "conf", "name", "jars", "pyFiles", "sparkSubmit",
    ...PROCESS_FIELDS, "properties"];
const SPARK = 'an object such as {application: "/srv/jobs/count.py", args: ["${year}-${month}-${day}"]}, or a function of the slot ' +
    "that returns one";

function textList(list, where) {
    if (!Array.isArray(list)) refuse(`${where}: expected an array such as ["a", "b"], not ${describe(list)}`);
    return list.map((one, n) => systemText(one, `${where}[${n}]`));
}

function sparkSettings(options, where) {
    known(options, SPARK_FIELDS, where);
    const application = text(options.application, `${where}: application`, "/srv/jobs/count.py");
    if (application.startsWith("-")) refuse(`${where}: application: expected a file, not the option ${quote(application)}`);
    const settings = { application: systemText(application, `${where}: application`) };
    for (const field of ["class", "master", "name", "sparkSubmit"]) {
        if (options[field] !== undefined) settings[field] = systemText(text(options[field], `${where}: ${field}`), `${where}: ${field}`);
    }
    for (const field of ["args", "jars", "pyFiles"]) {
        if (options[field] !== undefined) settings[field] = textList(options[field], `${where}: ${field}`);
    }
    if (options.deployMode !== undefined) settings.deployMode = among(options.deployMode, `${where}: deployMode`, ["client", "cluster"]);
    if (options.conf !== undefined) {
        settings.conf = environmentOf(options.conf, `${where}: conf`, '{"spark.executor.memory": "2g"}', "setting");
    }
    return { ...settings, ...processSettings(options, where) };
}

const sparkService = serviceMaker("spark", "sparkExternalService", sparkSettings, SPARK);

// --- Kafka ---

const KAFKA_FIELDS = ["cluster", "topic", "partition", "key", "value", "headers", "properties"];
const KAFKA = 'an object such as {topic: "orders", key: "${order}", value: {order: "${order}"}}, or a function of the slot that returns one';

function kafkaSettings(options, where) {
    known(options, KAFKA_FIELDS, where);
    const topic = text(options.topic, `${where}: topic`, "orders");
    if (!/^[A-Za-z0-9._-]{1,249}$/.test(topic.replace(/\$\{[^}]*\}/g, "x"))) {
        refuse(`${where}: topic: expected a name of letters, digits, "-", "_" and ".", such as "orders", not ${quote(topic)}`);
    }
    const settings = { topic };
    if (options.cluster !== undefined) settings.cluster = text(options.cluster, `${where}: cluster`, "main");
    if (options.partition !== undefined) settings.partition = count(options.partition, `${where}: partition`, 0);
    if (options.key !== undefined) settings.key = messageText(options.key, `${where}: key`);
    if (options.value !== undefined) settings.value = jsonOf(options.value, `${where}: value`);
    if (options.headers !== undefined) settings.headers = messageHeaders(options.headers, `${where}: headers`);
    return settings;
}

function messageHeaders(headers, where) {
    const read = {};
    for (const [name, value] of Object.entries(object(headers, where, 'an object such as {kind: "new"}'))) {
        if (/^kelos-/i.test(name)) refuse(`${where}: ${quote(name)}: headers that begin with "kelos-" are Kelos's own`);
        if (value !== undefined) read[name] = messageText(value, `${where}.${name}`);
    }
    return read;
}

/** A text of a message, or the secret that it is. */
function messageText(value, where) {
    return isSecret(value) ? secretOf(value, where) : propertyText(value, where);
}

const kafkaMessage = serviceMaker("kafka", "kafkaMessage", kafkaSettings, KAFKA, "kelos");

// --- executors that a program brings ---

const OWN_FIELDS = ["executor", "settings", "properties"];

/** A job of an executor that the server's program has beside its own. */
function ownService(options) {
    const where = "celos.externalService";
    object(options, where, 'an object such as {executor: "outbox", settings: {task: "${year}"}}');
    known(options, OWN_FIELDS, where);
    const executor = text(options.executor, `${where}: executor`, "outbox");
    if (["flow", "signal", "for-each"].includes(executor)) {
        refuse(`${where}: executor: ${quote(executor)} is carried out by the scheduler itself: expected a flow, as in kelos.flow("my-flow", {steps: {...}})`);
    }
    const settings = options.settings === undefined ? {} : jsonOf(object(options.settings, `${where}: settings`), `${where}: settings`);
    const properties = { fixed: shownProperties(options, where) };
    return new Made("external service", "externalService", { executor, settings, properties });
}
