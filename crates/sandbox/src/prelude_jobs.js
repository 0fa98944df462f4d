// Apps and their job ids: what a tasks.json says, and more. A part of one module with prelude.js.

const GRAPH_FIELDS = ["template", "identifiers"];
const APPS = 'an object of apps by name, such as {count: {job_id: "{date}_{client}", bash_cmd: "count {date}"}}';
const IDS = "a function of the identifiers of a job";

/** A function that a script leaves behind, to be asked about jobs. */
function jobFunction(fn, kind, where) {
    if (typeof fn !== "function") refuse(`${where}: expected ${IDS}, not ${describe(fn)}`);
    return keep(fn, kind, where);
}

/** A group that a pair of functions knows; any other one is data. */
function groupOf(group, where) {
    const isFunctional = group !== null && typeof group === "object" && !Array.isArray(group) &&
        (group.parentsOf !== undefined || group.childrenOf !== undefined);
    if (!isFunctional) return jsonOf(group, where);
    for (const field of ["app_name", "parentsOf", "childrenOf"]) {
        if (group[field] === undefined) refuse(`${where}: ${field} is missing: a group of functions has app_name, parentsOf and childrenOf`, "missing-option");
    }
    known(group, ["app_name", "parentsOf", "childrenOf"], where);
    return {
        app_name: jsonOf(group.app_name, `${where}.app_name`),
        parentsOf: jobFunction(group.parentsOf, "parents", `${where}.parentsOf`),
        childrenOf: jobFunction(group.childrenOf, "children", `${where}.childrenOf`),
    };
}

function dependsOn(on, where) {
    object(on, where);
    if (on.app_name !== undefined) return groupOf(on, where);
    return Object.fromEntries(Object.keys(on).map((name) => [name, groupOf(on[name], `${where}.${name}`)]));
}

/** What is more than data in an app. */
const APP_READERS = {
    steps: (value, where) => ({ steps: stepsOf(value, where.replace(/: steps$/, "")) }),
    externalService: (value, where) => Made.tree("external service", value, where),
    trigger: (value, where) => Made.tree("trigger", value, where),
    constraints: (value, where) => constraintsOf(value, where),
    valid: (value, where) => jobFunction(value, "valid", where),
    pools: (value, where) => (Array.isArray(value) && value.every((one) => !Made.is(one)) ? jsonOf(value, where) : poolsOf(value, where)),
    depends_on: dependsOn,
};

function appOf(app, where) {
    object(app, where, 'an object such as {job_id: "{date}_{client}", bash_cmd: "count {date}"}');
    const read = {};
    for (const key of Object.keys(app)) {
        if (app[key] === undefined) continue;
        read[key] = (APP_READERS[key] || jsonOf)(app[key], `${where}: ${key}`);
    }
    return read;
}

/** What may stand for identifiers: as data, and functions that know it. */
function identifiersOf(identifiers, where) {
    const read = { kinds: {}, functions: {} };
    for (const [name, kind] of Object.entries(object(identifiers, where, 'an object such as {date: "date", client: "integer"}'))) {
        if (typeof kind === "function") {
            read.functions[name] = kind;
            continue;
        }
        const pattern = kind instanceof RegExp ? kind : kind !== null && kind.pattern instanceof RegExp ? kind.pattern : undefined;
        read.kinds[name] = pattern === undefined ? jsonOf(kind, `${where}.${name}`) : { pattern: pattern.source };
    }
    return read;
}

/** The normal form of a value, as a function of an identifier gives it. */
function normalOf(fn, value, where = "") {
    const answer = fn(value);
    if (answer === undefined || answer === null || answer === false) refuse(`${where}the function of the identifier refuses ${quote(value)}`);
    if (typeof answer !== "string" && typeof answer !== "number") {
        refuse(`${where}the function of an identifier has to return a text or a number, not ${describe(answer)}`, "bad-answer");
    }
    return String(answer);
}

/** Lists of values with each in its normal form; functions can't be asked when jobs are derived from each other. */
function normalLists(lists, functions, where) {
    if (lists === null || typeof lists !== "object" || Array.isArray(lists)) return lists;
    const read = { ...lists };
    for (const [name, fn] of Object.entries(functions)) {
        if (typeof read[name] === "string" && read[name] !== "all") refuse(`${where}.${name}: expected a list, because a function knows its values`);
        if (Array.isArray(read[name])) read[name] = read[name].map((value) => normalOf(fn, String(value), `${where}.${name}: `));
    }
    return read;
}

function normalGroup(group, functions, where) {
    return Array.isArray(group) ? group.map((one) => normalLists(one, functions, where)) : normalLists(group, functions, where);
}

/** An app whose listed values are in their normal form. */
function normalApp(app, functions, where) {
    const read = { ...app };
    for (const key of ["autofill_values", "valid_if_or"]) {
        if (read[key] !== undefined) read[key] = normalLists(read[key], functions, `${where}: ${key}`);
    }
    const on = read.depends_on;
    if (on === undefined) return read;
    const at = `${where}: depends_on`;
    read.depends_on = on.app_name !== undefined ? normalGroup(on, functions, at)
        : Object.fromEntries(Object.keys(on).map((name) => [name, normalGroup(on[name], functions, at)]));
    return read;
}

function describeGraph(apps, options) {
    const where = "celos.defineJobGraph";
    object(apps, where, APPS);
    known(object(options, `${where}: options`, 'an object such as {template: "{date}_{client}"}'), GRAPH_FIELDS, where);
    const { kinds, functions: knowing } = identifiersOf(options.identifiers === undefined ? {} : options.identifiers, `${where}: identifiers`);
    const read = (name) => normalApp(appOf(apps[name], `${where}: ${quote(name)}`), knowing, `${where}: ${quote(name)}`);
    const all = Object.fromEntries(Object.keys(apps).map((name) => [name, read(name)]));
    const checks = Object.fromEntries(Object.entries(knowing).map(([name, fn]) => [name, jobFunction(fn, "identifier", `${where}: identifiers.${name}`)]));
    const template = options.template === undefined ? "" : text(options.template, `${where}: template`, "{date}_{client}");
    const problem = host.defineJobs(JSON.stringify(all), template, JSON.stringify(kinds), JSON.stringify(checks), here());
    if (Array.isArray(problem)) refuse(problem[1], problem[0]);
}

function defineJobGraph(apps, options = {}) {
    spot = host.same(looked, new Error().stack);
    looked = undefined;
    try {
        describeGraph(apps, options);
    } finally {
        spot = undefined;
    }
}

function jobTrigger(workflowID, jobID) {
    const workflow = workflowId(workflowID, "celos.jobTrigger: workflowID");
    const job = text(jobID, "celos.jobTrigger: jobID", "${year}${month}${day}_1");
    return new Made("trigger", "jobTrigger", { type: "job", workflow, job });
}

/** The identifiers of a job that a function named, as texts. */
function namedIds(ids, where) {
    object(ids, where, 'an object of identifiers such as {date: "20140601", client: 7}');
    return Object.fromEntries(Object.entries(ids).map(([name, value]) => [name, propertyText(value, `${where}.${name}`)]));
}

function jobsOf(answer, where, read) {
    if (!Array.isArray(answer)) refuse(`${where}: expected an array of jobs, not ${describe(answer)}`);
    return JSON.stringify(answer.map(read));
}

/** What reads what a function said of a job, by the kind of the function. */
const JOB_READERS = {
    valid: (answer) => {
        if (answer === true || answer === false) return JSON.stringify(answer);
        refuse(`the function \`valid\` has to return true or false, not ${describe(answer)}`, "bad-answer");
    },
    parents: (answer) => jobsOf(answer, "what parentsOf returned", (one, n) => {
        const where = `what parentsOf returned [${n}]`;
        if (!Array.isArray(one) || one.length !== 2) refuse(`${where}: expected an app and its identifiers, such as ["count", {date: "20140601"}], not ${describe(one)}`);
        return [text(one[0], where, "count"), namedIds(one[1], where)];
    }),
    children: (answer) => jobsOf(answer, "what childrenOf returned", (one, n) => namedIds(one, `what childrenOf returned [${n}]`)),
};

/** Asks a function about a job; undefined where it is of a kind that is not asked about jobs alone. */
function callAboutJob(fn, kind, job) {
    if (kind === "identifier") return JSON.stringify(normalOf(fn, job.text));
    const read = JOB_READERS[kind];
    if (read === undefined) return undefined;
    return read(kind === "children" ? fn(job.app, job.ids) : fn(job.ids));
}
