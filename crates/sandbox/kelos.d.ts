// What Kelos hands to workflow scripts. Put this file beside your scripts, or reference it with
//   /// <reference path="kelos.d.ts" />
// to have completion and documentation in your editor. Nothing else is needed at run time.

//
// Three global variables, which scripts (most often a defaults file) may set, change what functions do:
//   var CELOS_DEFAULT_HDFS = "hdfs://nameservice1";            file system of celos.hdfsCheckTrigger
//   var CELOS_DEFAULT_OOZIE = "http://oozie:11000/oozie";      URL of celos.oozieExternalService
//   var CELOS_DEFAULT_OOZIE_PROPERTIES = {"user.name": "me"};  properties that all Oozie jobs start from

/** Decides for each slot whether it may go. Made by functions of `celos` alone. */
interface Trigger { readonly __kind: "trigger" }
/** What must hold of what is at a path, beside that it is there. */
interface PathConditions {
    /** Look at the files directly in the folder whose names match: `part-*`. `${year}` and the like are replaced. */
    glob?: string;
    /** So many files at least: of those that match `glob`; or in the folder, but for names that begin with `.` or `_`. */
    minCount?: number;
    /** So many bytes at least: in the file, or in the files of the folder together. */
    minBytes?: number;
    /** Nothing must have been written to it for so many seconds. */
    minAgeSeconds?: number;
}
/** Decides at which times a workflow has slots. Made by functions of `celos` alone. */
interface Schedule { readonly __kind: "schedule" }
/** Decides how many ready slots go at a time. Made by functions of `celos` alone. */
interface SchedulingStrategy { readonly __kind: "scheduling strategy" }
/** Permits that runs of several workflows share. Made by functions of `celos` alone. */
interface Pool { readonly __kind: "pool" }
/** What must hold besides the trigger. Made by functions of `celos` alone. */
interface Constraint {
    readonly __kind: "constraint";
    /** Where it does not hold, the slot waits. */
    waitUntilMet(): Constraint;
    /** Where it does not hold, the slot is skipped. Not for delays. */
    abortIfNotMet(): Constraint;
}
/** Does the work of a slot. Made by functions of `celos` alone. */
interface ExternalService { readonly __kind: "external service" }

/** A value that a register can hold. */
type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A value of a property; numbers and truth values become texts. */
type PropertyValue = string | number | boolean | bigint | ScheduledTime | SlotID | undefined;

/** Properties of a job. In texts, `${year}` to `${second}` are replaced by the slot's values. */
interface Properties { [name: string]: PropertyValue }

/** A function of the slot that returns the properties of its job; called when a run is started. */
type PropertiesFunction = (slotID: SlotID) => Properties;

/** What happens at the two odd nights of a year in a zone with daylight saving. */
interface DaylightSaving {
    /** Times that the clocks leave out: run at the first moment after them (default), or not at all. */
    gap?: "shift" | "skip";
    /** Times that the clocks have twice. Default `auto`: both for "every n minutes", the first for fixed times. */
    fold?: "auto" | "first" | "second" | "both";
}

interface ZoneOptions {
    /** IANA name of the zone in which the cron expression is read, such as `Europe/Berlin`. Default UTC. */
    timeZone?: string;
    /** What happens when the clocks change. */
    daylightSaving?: DaylightSaving;
}

/** What happens after a failure. */
interface Retry {
    /** Retries after the first attempt. */
    count: number | string;
    /** Wait before the first retry. Default 0. */
    delaySeconds?: number | string;
    /** Whether each wait is as long as the one before (default), or twice as long. */
    backoff?: "fixed" | "exponential";
    /** No wait is longer than this. */
    maxDelaySeconds?: number | string;
    /** Up to this many percent of a wait are taken off at random. Default 0. */
    jitterPercent?: number | string;
    /** The same as a share from 0 to 1. */
    jitter?: number;
    /**
     * Whether a run with an unknown outcome counts as failed (default), or makes the slot fail for good. Where a service took a job for certain
     * and can't be asked about it, it always does.
     */
    onUnknown?: "retry" | "fail";
}

/** A person or a team. */
interface Contact {
    name?: string | null;
    email?: string | null;
}

interface WorkflowOptions extends ZoneOptions {
    /** The name of the workflow, unique on a server, without a slash. */
    id: string;
    /** The times at which it has slots. */
    schedule: Schedule;
    /** How many of its slots may run at a time. */
    schedulingStrategy: SchedulingStrategy;
    /** Pools whose permits each of its runs holds, such as `[celos.pool("spark", 4)]`: all of them, or it waits. */
    pools?: Pool[];
    /** When a slot may go. */
    trigger: Trigger;
    /** What must hold besides, once the trigger is met, such as `[celos.timeWindow("22:00", "06:00")]`. */
    constraints?: Constraint[];
    /** What is executed. */
    externalService: ExternalService;
    /** No slot before this time (ISO 8601, UTC). Default `1970-01-01T00:00Z`. */
    startTime?: string | ScheduledTime | Date;
    /** Immediate retries after a failure. Default 0. For more control use `retry`. */
    maxRetryCount?: number | string;
    /** What happens after a failure; not together with `maxRetryCount`. */
    retry?: Retry;
    /** A slot that still waits this long after its time expires. Default: it waits for ever. */
    waitTimeoutSeconds?: number;
    /** What the workflow is for. */
    description?: string;
    /** A page about it. */
    url?: string;
    /** Who knows more. */
    contacts?: Contact[];
    /** Words to find it by. */
    tags?: string[];
}

interface CommandOptions {
    /** Program and arguments. `${year}` and the like are replaced in each; no shell is involved. */
    command?: (string | number)[];
    /**
     * The text of a shell script. It is passed to the shell as it stands: the slot's values are variables of
     * its environment, so `"${year}"` is expanded by the shell itself and never pasted into the text.
     */
    shell?: string;
    /** Further variables of the environment; `${year}` and the like are replaced in the values. */
    env?: { [name: string]: PropertyValue };
    /** The folder to run in; `${year}` and the like are replaced. */
    cwd?: string;
    /** The run is ended, and fails, after this time. */
    timeoutSeconds?: number | string;
    /** Time between the polite and the forced end of a run. */
    graceSeconds?: number | string;
    /** No more than this of the output is kept. */
    logLimitBytes?: number | string;
    /** Further properties that are shown with the job. */
    properties?: Properties;
}

/** What can be written as JSON; times and slots become texts, and `${year}` and the like are replaced in texts. */
type Body = null | boolean | number | string | ScheduledTime | SlotID | Body[] | { [name: string]: Body | undefined };

/** The text of a header, or a variable of the server's environment that it comes from, for what nobody may see. */
type HeaderValue = PropertyValue | {
    /** The name of the variable. */
    env: string;
    /** What stands before its value, such as `Bearer `. */
    prefix?: string;
};

/** JSON pointers and what has to stand there: a value, or an array of which one does. All of them must hold. */
interface Condition { [pointer: string]: Json }

interface HttpPoll {
    /**
     * Where the status is. `${answer/id}` stands for the value at `/id` in the JSON that the start was answered with,
     * `${header/Location}` for a header of that answer. Default: the header `Location`.
     */
    url?: string;
    /** Seconds between two looks. Default 10. */
    everySeconds?: number | string;
    /** When the job has succeeded, such as `{"/status": "SUCCEEDED"}`. */
    done: Condition;
    /** When it has failed. */
    failed?: Condition;
    /** The JSON pointer at which the status says why it has failed. */
    message?: string;
    /** The job is ended, and fails, after this time. Default: it may take for ever. */
    timeoutSeconds?: number | string;
}

interface HttpCancel {
    /** As the URL of `poll`. Default: where the status is. */
    url?: string;
    /** Default `DELETE`. */
    method?: string;
}

interface HttpOptions {
    /** Where jobs are started. */
    url: string;
    /** Default `POST`. */
    method?: string;
    /** Headers of each request. Those with an `env` are sent to the host of `url` and to no other. */
    headers?: { [name: string]: HeaderValue };
    /** A text, or what is sent as JSON. */
    body?: Body;
    /** Statuses by which the service says that it has taken the job, such as `[200, "3xx"]`. Default `"2xx"`. */
    expect?: (number | string)[] | number | string;
    /** How to find out how the job ended. Without it the answer to the start is its end. */
    poll?: HttpPoll;
    /** How to end a job. Without it a killed run is given up, and the service goes on. */
    cancel?: HttpCancel;
    /** Further properties that are shown with the job. */
    properties?: Properties;
}

interface SparkOptions {
    /** The application: a jar or a Python file. `${year}` and the like are replaced, here and in all other texts. */
    application: string;
    /** The class to start, for jars. */
    class?: string;
    /** Arguments of the application. */
    args?: PropertyValue[];
    /** Such as `yarn`, `spark://host:7077`, `local[2]`. Default: what Spark is configured for. */
    master?: string;
    /** Where the driver runs: in `spark-submit` (default), or on the cluster. */
    deployMode?: "client" | "cluster";
    /** Settings of Spark, such as `{"spark.executor.memory": "2g"}`. */
    conf?: { [name: string]: PropertyValue };
    /** What Spark calls the application. */
    name?: string;
    /** Further jars. */
    jars?: string[];
    /** Further Python files. */
    pyFiles?: string[];
    /** The program. Default: `bin/spark-submit` below `SPARK_HOME`, or the one on the server's path. */
    sparkSubmit?: string;
    /** Further variables of the environment. */
    env?: { [name: string]: PropertyValue };
    /** The folder to run in. */
    cwd?: string;
    /** The run is ended, and fails, after this time. */
    timeoutSeconds?: number | string;
    /** Time between the polite and the forced end of a run. */
    graceSeconds?: number | string;
    /** No more than this of the output is kept. */
    logLimitBytes?: number | string;
    /** Further properties that are shown with the job. */
    properties?: Properties;
}

/** A moment in UTC, in whole milliseconds. */
declare class ScheduledTime {
    /** Reads a time such as `2015-09-13T13:40Z`. */
    constructor(time: string | ScheduledTime | DateTime);
    /** The present time: of the evaluation while a file is evaluated, of the call inside a function. */
    static now(): ScheduledTime;
    getYear(): number;
    /** From 1 to 12. */
    getMonth(): number;
    /** Day of the month. */
    getDay(): number;
    getHour(): number;
    getMinute(): number;
    getSecond(): number;
    getMillisecond(): number;
    /** Milliseconds since 1970. */
    getMillis(): number;
    /** The same as a time of Joda, as Celos gives it. */
    getDateTime(): DateTime;
    /** Four digits. */
    year(): string;
    /** Two digits. */
    month(): string;
    /** Two digits. */
    day(): string;
    /** Two digits. */
    hour(): string;
    /** Two digits. */
    minute(): string;
    /** Two digits. */
    second(): string;
    /** Three digits. */
    millisecond(): string;
    plusYears(years: number): ScheduledTime;
    /** The day of the month is kept where the month has it; otherwise it's the month's last. */
    plusMonths(months: number): ScheduledTime;
    plusDays(days: number): ScheduledTime;
    plusHours(hours: number): ScheduledTime;
    plusMinutes(minutes: number): ScheduledTime;
    plusSeconds(seconds: number): ScheduledTime;
    minusYears(years: number): ScheduledTime;
    minusMonths(months: number): ScheduledTime;
    minusDays(days: number): ScheduledTime;
    minusHours(hours: number): ScheduledTime;
    minusMinutes(minutes: number): ScheduledTime;
    minusSeconds(seconds: number): ScheduledTime;
    /** Negative, zero or positive, as this time is before, at or after the other. */
    compareTo(other: ScheduledTime): number;
    equals(other: unknown): boolean;
    /** `2015-09-13T13:40:00.000Z` */
    toString(): string;
}

/** What scripts of Celos call of Joda's times. */
declare class DateTime {
    private constructor();
    /** Milliseconds since 1970. */
    getMillis(): number;
    getYear(): number;
    /** From 1 to 12. */
    getMonthOfYear(): number;
    getDayOfMonth(): number;
    /** From 1, Monday, to 7. */
    getDayOfWeek(): number;
    getDayOfYear(): number;
    getHourOfDay(): number;
    getMinuteOfHour(): number;
    getSecondOfMinute(): number;
    getMillisOfSecond(): number;
    toScheduledTime(): ScheduledTime;
    plusYears(n: number): DateTime;
    plusMonths(n: number): DateTime;
    plusWeeks(n: number): DateTime;
    plusDays(n: number): DateTime;
    plusHours(n: number): DateTime;
    plusMinutes(n: number): DateTime;
    plusSeconds(n: number): DateTime;
    minusYears(n: number): DateTime;
    minusMonths(n: number): DateTime;
    minusWeeks(n: number): DateTime;
    minusDays(n: number): DateTime;
    minusHours(n: number): DateTime;
    minusMinutes(n: number): DateTime;
    minusSeconds(n: number): DateTime;
    isBefore(other: DateTime | ScheduledTime): boolean;
    isAfter(other: DateTime | ScheduledTime): boolean;
    isEqual(other: DateTime | ScheduledTime): boolean;
    equals(other: unknown): boolean;
    /** `2015-09-13T13:40:00.000Z`, or by a pattern of Joda such as `yyyy-MM-dd`. */
    toString(pattern?: string): string;
}

/** The name of a workflow, as Celos has it. */
declare class WorkflowID {
    constructor(id: string);
    equals(other: unknown): boolean;
    toString(): string;
}

/** A slot: a workflow and a time of its schedule. */
declare class SlotID {
    constructor(workflowID: string | WorkflowID, scheduledTime: ScheduledTime);
    getWorkflowID(): string;
    getScheduledTime(): ScheduledTime;
    /** `my-workflow@2015-09-13T13:40:00.000Z` */
    toString(): string;
}

/** The identifiers of a job with their values, as texts: `{date: "20140601", client: "7"}`. */
interface JobIds { [identifier: string]: string }
/** The same where a function names a job: numbers become texts. */
interface NamedIds { [identifier: string]: PropertyValue }

/** What may stand for an identifier: any text, a whole number, a day such as `20140601` or `2014-06-01`, one of some, what matches. */
type IdentifierKind = "text" | "integer" | "date" | "yyyy-mm-dd" | string[] | RegExp | { pattern: string | RegExp }
    | { kind: "integer"; min?: number; max?: number } | IdentifierFunction;
/**
 * Gives the normal form of what somebody wrote, or refuses it: by null, false, or by throwing an error. It is asked where a job is
 * named by a person, and once for each listed value.
 */
type IdentifierFunction = (written: string) => string | number | null | undefined | false;

/** Jobs that a job waits for. Values of identifiers are listed by name; `"all"` means all that the parents' apps have. */
interface JobGroup {
    /** The apps whose jobs these are. */
    app_name: string | string[];
    /** These jobs and no others. */
    job_id?: string[];
    [identifier: string]: string | (string | number)[] | undefined;
}

/** Jobs that a job waits for, by a pair of functions: each has to be the other one read backwards (`kelos check` tries that). */
interface JobFunctions {
    /** The apps whose jobs may be parents. */
    app_name: string | string[];
    /** The parents of a job of this app. */
    parentsOf: (ids: JobIds) => [app: string, ids: NamedIds][];
    /** The jobs of this app that wait for a job of another one. */
    childrenOf: (app: string, ids: JobIds) => NamedIds[];
}

/** An app: a workflow whose slots are jobs with ids. The words are those of a tasks.json. */
interface AppOptions {
    /** How job ids are made of identifiers, such as `{date}_{client}`. */
    job_id?: string;
    /** All values of an identifier, where they are known beforehand: a list, or a range such as `"10:20:2"`. */
    autofill_values?: { [identifier: string]: (string | number)[] | string };
    /** One group, or groups by name: all jobs of any one of them are enough. A list of groups means all of them. */
    depends_on?: JobGroup | JobFunctions | { [group: string]: JobGroup | JobGroup[] | JobFunctions };
    /** Only jobs of which an identifier has one of these values are run; the others are skipped. */
    valid_if_or?: { [identifier: string]: (string | number)[] };
    /** Only jobs for which it returns true are run, beside those of `valid_if_or`. */
    valid?: (ids: JobIds) => boolean;
    /** What else its jobs wait for. */
    trigger?: Trigger;
    /** What must hold besides, once all that has come. */
    constraints?: Constraint[];
    /** `bash` (default), `pyspark`, or a program in the folder `plugins`. */
    job_type?: string;
    /** A shell command in which `{date}` stands for a value, quoted for the shell; `{date:raw}` for the value as it is. */
    bash_cmd?: string;
    /** In place of `job_type`: its functions are given the identifiers of the job. */
    externalService?: ExternalService;
    /** The module of Python that Spark runs. */
    pymodule?: string;
    spark_conf?: { [name: string]: string | number | boolean };
    env?: { [name: string]: string };
    env_from_os?: string[];
    uris?: string[];
    read_fp?: string;
    write_fp?: string;
    minPartitions?: number;
    /** How many of its jobs run at a time; no limit by default. */
    concurrency?: number;
    /** Attempts in all, 5 by default. */
    max_retry?: number;
    /** Seconds after which a job is ended and counts as failed. */
    timeout?: number;
    /** Pools whose permits each of its jobs holds. */
    pools?: Pool[];
    /** Opens jobs at the times of a cron expression: `identifier` is a date, the others have `autofill_values`. */
    feed?: { identifier: string; cron: string; zone?: string };
    /** What a program in the folder `plugins` reads beside. */
    [own: string]: unknown;
}

/** What holds for all apps of a graph. */
interface GraphOptions {
    /** The template of job ids of apps that have none. */
    template?: string;
    /** What may stand for each identifier; any text where nothing is said. */
    identifiers?: { [identifier: string]: IdentifierKind };
}

/** Whether a program is a workflow, which schedules can run, or something else, whose ends they can wait for. */
type ProgramTypeName = "WORKFLOW" | "SPARK" | "MAPREDUCE" | "SERVICE" | "WORKER" | "FLOW";
/** How a run of a program ended. */
type ProgramStatusName = "COMPLETED" | "FAILED" | "KILLED" | "succeeded" | "failed" | "killed";
type TimeUnitName = "MILLISECONDS" | "SECONDS" | "MINUTES" | "HOURS" | "DAYS";

/** Which application a file is. What is left out is that of the file's name. */
interface ApplicationOptions {
    /** Default `default`. */
    namespace?: string;
    /** Default: the name of the file without `.js`. */
    name?: string;
    /** Default `-SNAPSHOT`. */
    version?: string;
    /**
     * Whether the application's schedules become what the file says whenever it changes (true), or stay what people made of
     * them. Default: what the server was told.
     */
    "app.deploy.update.schedules"?: boolean | "true" | "false";
}

interface ProgramOptions {
    /** What it is. Only workflows, the default, can be scheduled. */
    kind?: ProgramTypeName;
    description?: string;
    /** What happens after a failure, whoever started it. */
    retry?: Retry;
    maxRetryCount?: number | string;
    pools?: Pool[];
}

/** Properties of a schedule, which its runs get as arguments; what is no text becomes JSON. */
interface ScheduleProperties { [name: string]: PropertyValue | Body }

/** A schedule that is whole, for `schedule` to take in. */
interface BuiltSchedule { readonly __kind: "event schedule" }

/** Says what a schedule is. Its trigger comes last and ends it. */
interface ScheduleBuilder {
    setDescription(description: string): ScheduleBuilder;
    withDescription(description: string): ScheduleBuilder;
    /** Arguments of its runs. */
    setProperties(properties: ScheduleProperties): ScheduleBuilder;
    withProperties(properties: ScheduleProperties): ScheduleBuilder;
    /** How long it may wait for trigger and constraints once a first fact came. Default a day. */
    setTimeout(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** Fewer runs of the program than this go on. By default it aborts. */
    withConcurrency(runs: number): ScheduleBuilder;
    /** So much time has passed since the first fact came. It always waits. */
    withDelay(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** The clock is between two times, such as `"22:00"` and `"06:00"`. By default it waits. */
    withTimeWindow(start: string, end: string, zone?: string): ScheduleBuilder;
    /** So much time has passed since the start of the program's last run that succeeded, or that goes on. By default it aborts. */
    withDurationSinceLastRun(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** The constraint before it waits. */
    waitUntilMet(): ScheduleBuilder;
    /** The constraint before it aborts. */
    abortIfNotMet(): ScheduleBuilder;
    /** The zone of its cron expressions and windows, where they name none. Default UTC. */
    timeZone(zone: string): ScheduleBuilder;
    /** Nothing fires before this moment. */
    startTime(time: string | ScheduledTime | Date): ScheduleBuilder;
    /** Nothing fires at or after this moment. */
    endTime(time: string | ScheduledTime | Date): ScheduleBuilder;
    /** Cron times count up to so much later, each by a draw of its own. */
    jitter(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** What becomes of cron times that passed while nobody scheduled: none counts, the latest (default), or all. */
    catchUp(policy: "skip" | "latest" | "all"): ScheduleBuilder;
    /** It is enabled when it comes to be; without this somebody has to enable it. */
    enabled(on?: boolean): ScheduleBuilder;
    /** Whenever a time of a cron expression passes: `"0 4 * * *"`, or six fields with the second first. 1 is Sunday. */
    triggerByTime(cron: string): BuiltSchedule;
    /** Once so many new partitions of a dataset came. */
    triggerOnPartitions(dataset: string, partitions: number): BuiltSchedule;
    triggerOnPartitions(namespace: string, dataset: string, partitions: number): BuiltSchedule;
    /** When a run of a program ends: of this application, or of another one. Without a status, when it fails. */
    triggerOnProgramStatus(type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    triggerOnProgramStatus(application: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    triggerOnProgramStatus(namespace: string, application: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    triggerOnProgramStatus(namespace: string, application: string, version: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    /** When any trigger is met, also one of a function of `celos`. */
    triggerOn(trigger: Trigger): BuiltSchedule;
}

/** Makes triggers to be combined. `celos` has more of them. */
interface TriggerFactory {
    byTime(cron: string): Trigger;
    onPartitions(dataset: string, partitions: number): Trigger;
    onPartitions(namespace: string, dataset: string, partitions: number): Trigger;
    onProgramStatus(type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): Trigger;
    onProgramStatus(application: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): Trigger;
    onProgramStatus(namespace: string, application: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): Trigger;
    onProgramStatus(namespace: string, application: string, version: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): Trigger;
    and(...triggers: Trigger[]): Trigger;
    or(...triggers: Trigger[]): Trigger;
}

declare namespace celos {
    /** Says which application the file is, before all else. */
    function application(options: ApplicationOptions): void;
    /** Defines a job that people start, and schedules run. Gives its name. */
    function program(name: string, job: ExternalService, options?: ProgramOptions): string;
    /** Begins a schedule, for `schedule` to take in once it is whole. */
    function buildSchedule(name: string, type: "WORKFLOW", program: string): ScheduleBuilder;
    /** Takes in a schedule that was built. */
    function schedule(built: BuiltSchedule): void;
    /** Begins a schedule that is taken in at its trigger. */
    function schedule(name: string, program: string): ScheduleBuilder;
    function schedule(name: string, type: "WORKFLOW", program: string): ScheduleBuilder;
    function getTriggerFactory(): TriggerFactory;
    const ProgramType: { readonly [T in ProgramTypeName]: T };
    const ProgramStatus: { readonly COMPLETED: "COMPLETED", readonly FAILED: "FAILED", readonly KILLED: "KILLED" };
    const TimeUnit: { readonly [U in TimeUnitName]: U };
    /** Zones as they are written in Java; a name does as well. */
    const TimeZone: { getTimeZone(id: string): string };
    /** Maps as they are written in Java; an object does as well. */
    const ImmutableMap: {
        of(...keysAndValues: any[]): ScheduleProperties;
        builder(): { put(key: string, value: any): any, build(): ScheduleProperties };
    };

    /** Ready once so many (default 1) new partitions of a dataset came while the slot waited. */
    function partitionsTrigger(dataset: string, partitions?: number): Trigger;
    /** Ready once a run of a program, of this application or any other workflow, ended so while the slot waited. */
    function programStatusTrigger(program: string, ...statuses: ProgramStatusName[]): Trigger;
    /** Ready once a time of a cron expression of five or six fields passed while the slot waited. */
    function cronTrigger(cron: string, zone?: string): Trigger;
    /** Ready once somebody gave a signal while the slot waited. */
    function signalTrigger(name: string): Trigger;

    /** Fewer runs of the workflow than this go on. By default it aborts. */
    function concurrency(runs: number): Constraint;
    /** So much time has passed since the slot came to be. It always waits. */
    function delay(amount: number, unit: TimeUnitName): Constraint;
    /** The clock is between two times, such as `"22:00"` and `"06:00"`. By default it waits. */
    function timeWindow(start: string, end: string, zone?: string): Constraint;
    /** So much time has passed since the start of the last run that succeeded, or that goes on. By default it aborts. */
    function sinceLastRun(amount: number, unit: TimeUnitName): Constraint;

    /** Defines a workflow. */
    function defineWorkflow(options: WorkflowOptions): void;
    /** The old name of `defineWorkflow`. */
    function addWorkflow(options: WorkflowOptions): void;
    /** Defines apps, by name: workflows whose slots are jobs with ids, and what waits for what. */
    function defineJobGraph(apps: { [app: string]: AppOptions }, options?: GraphOptions): void;
    /**
     * Evaluates `<name>.js` of the defaults folder in the global scope, so that its variables and functions
     * become available. It is evaluated each time it is imported.
     */
    function importDefaults(name: string): unknown;

    /** A slot every hour on the hour: the same as `celos.cronSchedule("0 0 * * * ?")`. */
    function hourlySchedule(): Schedule;
    /** A slot every minute: the same as `celos.cronSchedule("0 * * * * ?")`. */
    function minutelySchedule(): Schedule;
    /** Slots at the times of a Quartz cron expression, such as `"0 15 10 * * ?"`. */
    function cronSchedule(expression: string, options?: ZoneOptions): Schedule;
    /** The schedule of another workflow. */
    function dependentSchedule(workflowID: string): Schedule;

    /** Runs ready slots oldest first, at most `concurrency` (default 1) at a time. */
    function serialSchedulingStrategy(concurrency?: number | string): SchedulingStrategy;

    /**
     * A pool of `size` permits, of which each run takes `permits` (default 1), beside the limits of its workflow and of all
     * runs. Workflows share a pool by its name, in whichever file; where their sizes differ, the smallest holds.
     */
    function pool(name: string, size: number | string, permits?: number | string): Pool;

    /** Always ready. */
    function alwaysTrigger(): Trigger;
    /**
     * Ready when a file or folder is in HDFS. `${year}`, `${month}`, `${day}`, `${hour}`, `${minute}` and
     * `${second}` are replaced by the slot's values. A path with a scheme, such as `file:///data`, names its
     * own file system; otherwise `fs` or the variable `CELOS_DEFAULT_HDFS` does.
     */
    function hdfsCheckTrigger(path: string, fs?: string, conditions?: PathConditions): Trigger;
    /**
     * Ready when something is at a URI: `s3://bucket/in/${year}/_READY`, `gs:`, `abfs:`, `hdfs:`, `webhdfs:`, `sftp:`, `http:`,
     * `https:` or `file:`. Credentials come from the server's surroundings, never from here. On object stores a slash at
     * the end asks for anything below that prefix.
     */
    function pathTrigger(uri: string, conditions?: PathConditions): Trigger;
    /**
     * Ready when a file or folder is on the server's own disk. `${year}` and the like are replaced. A relative path is
     * looked for where the server works: with `kelos up` that is the folder of the scripts.
     */
    function fileCheckTrigger(path: string, conditions?: PathConditions): Trigger;
    /** Ready when the slot of another workflow at the same time has succeeded. */
    function successTrigger(workflowID: string): Trigger;
    /**
     * Ready when a job of an app has succeeded. In its id `${year}`, `${month}`, `${day}` and the like are replaced by the slot's
     * values: `celos.jobTrigger("model", "${year}${month}${day}_1")`.
     */
    function jobTrigger(workflowID: string, jobID: string): Trigger;
    /** Ready when all are; without arguments always. */
    function andTrigger(...triggers: Trigger[]): Trigger;
    /** Ready when one is; without arguments never. */
    function orTrigger(...triggers: Trigger[]): Trigger;
    /** Ready when the other isn't. */
    function notTrigger(trigger: Trigger): Trigger;
    /** Ready when this many seconds have passed since the slot's time. */
    function delayTrigger(seconds: number): Trigger;
    /** Asks the other trigger about the time this many seconds later, or earlier where negative. */
    function offsetTrigger(seconds: number, trigger: Trigger): Trigger;
    /**
     * Ready when the function returns `true`; not yet with `false`; `"never"` skips the slot for good.
     * The function is called again and again while the slot waits, and has to be quick.
     */
    function functionTrigger(fn: (slotID: SlotID, now: ScheduledTime) => boolean | "never"): Trigger;

    /**
     * Runs slots with Oozie. Properties start from `CELOS_DEFAULT_OOZIE_PROPERTIES`; the URL defaults to
     * `CELOS_DEFAULT_OOZIE`.
     */
    function oozieExternalService(properties: Properties | PropertiesFunction, oozieURL?: string): ExternalService;
    /** Runs slots as commands of the server's machine. */
    function commandExternalService(options: CommandOptions | ((slotID: SlotID) => CommandOptions) | ((ids: JobIds) => CommandOptions)): ExternalService;
    /**
     * Runs slots as jobs of a service that is asked by HTTP. Each start carries the name of the run in the header
     * `Idempotency-Key`; it is asked for again, with the same key, while the service is down or busy.
     */
    function httpExternalService(options: HttpOptions | ((slotID: SlotID) => HttpOptions)): ExternalService;
    /** Runs slots as Spark applications, by `spark-submit` on the server's machine. */
    function sparkExternalService(options: SparkOptions | ((slotID: SlotID) => SparkOptions)): ExternalService;
    /**
     * Runs slots with an executor that the server's program brings along. Its settings are its own; `${year}` and the like
     * are replaced in their texts.
     */
    function externalService(options: { executor: string; settings?: { [name: string]: Body | undefined }; properties?: Properties }): ExternalService;

    /** A function of the slot that adds `CELOS_DEFAULT_OOZIE_PROPERTIES` to properties. */
    function makePropertiesGen(properties: Properties | PropertiesFunction): (slotID: SlotID) => { [name: string]: string };
    /** Copies all properties of `source` over `target`, and returns `target`. */
    function mergeProperties(source: object, target: object): object;
    /** Whether something is in HDFS now. A file that asks is evaluated again at each load. */
    function hdfsCheck(path: string, slotID?: SlotID | null, fs?: string): boolean;
    /** The path itself; in a test with real commands the same path below the test's own folder. */
    function hdfsPath(path: string): string;
    /** The name itself; in a test with real commands a name that no other test has. */
    function databaseName(name: string): string;
    /** Whether `kelos test` is at work; false on servers. */
    function isRunningInTestMode(): boolean;
    /** Replaces `${year}`, `${month}`, `${day}`, `${hour}`, `${minute}` and `${second}`. */
    function replaceTimeVariables(template: string, scheduledTime: ScheduledTime): string;
    /** The value of a register, or null. A change of it has the file evaluated again. */
    function getRegister(bucket: string, key: string): Json;
    /** Calls a function for each register of a bucket, sorted by key. */
    function forEachRegister(bucket: string, fn: (key: string, value: Json) => void): void;
}

/** The same as `celos.importDefaults`. */
declare function importDefaults(name: string): unknown;

// The words of event schedules are there without `celos.`, too, unless a script takes their names for itself.
declare const application: typeof celos.application;
declare const program: typeof celos.program;
declare const buildSchedule: typeof celos.buildSchedule;
declare const schedule: typeof celos.schedule;
declare const getTriggerFactory: typeof celos.getTriggerFactory;
declare const ProgramType: typeof celos.ProgramType;
declare const ProgramStatus: typeof celos.ProgramStatus;
declare const TimeUnit: typeof celos.TimeUnit;
declare const TimeZone: typeof celos.TimeZone;
declare const ImmutableMap: typeof celos.ImmutableMap;

//
// What follows is for test files (`tests/*.test.js`, run by `kelos test`) alone. They may use all of the above, too, but for
// `celos.defineWorkflow`.

/** A moment in UTC: text such as `2026-01-05T03:00Z`. */
type Moment = string | ScheduledTime | Date;
/** A number of seconds, or a text such as `90s`, `15m`, `36h`, `7d` or `2w`. */
type Span = number | string;
/** `my-workflow@2026-01-05T03:00Z`, or a SlotID. */
type SlotName = string | SlotID;
type SlotStateName = "waiting" | "held" | "queued" | "dispatched" | "running" | "backoff" | "succeeded" | "failed" | "expired" | "skipped" | "killed";
type RunStateName = "dispatched" | "running" | "succeeded" | "failed" | "killed" | "unknown";

/** One path, or one for each of some slots. A path without a scheme is meant in any file system. */
interface TestPaths {
    /** With `each`, `${year}` and the like are replaced, or a function of the slot tells the path; null leaves a slot out. */
    path: string | ((slotID: SlotID) => string | null);
    /** The slots: those of a workflow within the test, or the times of a cron expression. */
    each?: string;
    /** Times that are left out. */
    except?: Moment[];
    /** The only times. */
    only?: Moment[];
}

/** Something that comes from outside. */
interface TestInput extends TestPaths {
    /** When it comes. Default: it is there from the start. */
    at?: Moment;
    /** With `each`: how long after the slot's time it comes. Default 0. */
    after?: Span | ((slotID: SlotID) => Span);
    /** When it vanishes. */
    goneAt?: Moment;
    /** How long after it came it vanishes. */
    goneAfter?: Span;
    /** How large it is, in bytes. */
    size?: number;
    /** What is in it. */
    content?: string;
    /** A file or folder beside the test file that it is a copy of. */
    from?: string;
}

/** What becomes of a run. Default: it takes a minute and succeeds. */
interface FakeRun {
    takes?: Span;
    /** It fails: always, the first so many runs of a slot, or always and for this reason. */
    fails?: boolean | number | string;
    /** Why it fails. */
    reason?: string;
    /** Nobody can tell how it ended. */
    unknown?: boolean;
    /** It never ends. */
    hangs?: boolean;
    /** What it leaves behind when it succeeds; `${year}` and the like are replaced. */
    writes?: (string | { path: string, size?: number, content?: string })[];
}

/** A run, as a function that says what becomes of it sees it. */
interface TestRun {
    workflow: string;
    slot: SlotID;
    time: ScheduledTime;
    /** From 1. */
    number: number;
    /** What the job is given; templates are filled. */
    settings: { [name: string]: Json };
    properties: { [name: string]: Json };
}

/** Something that people do, at a moment. One of `rerun`, `kill`, `pause`, `resume`, `backfill` and `setRegister`. */
interface TestAction {
    at: Moment;
    /** Why. */
    reason?: string;
    rerun?: SlotName;
    kill?: SlotName;
    pause?: string;
    resume?: string;
    backfill?: string;
    /** With `backfill`: the range. */
    from?: Moment;
    until?: Moment;
    mode?: "missing" | "unsuccessful" | "all";
    /** The bucket. */
    setRegister?: string;
    key?: string;
    value?: Json;
}

/** What is to come of a test. At least one field. */
interface Expectations {
    /** The states of a workflow's slots: one that all have, or how many are in each; a state that isn't named has none. */
    slots?: { [workflow: string]: SlotStateName | { [state in SlotStateName]?: number } };
    /** Where single slots stand; `because` is a part of the reason that `kelos why` would give. */
    states?: { [slot: string]: SlotStateName | { state: SlotStateName, because?: string } };
    /** What is there. */
    outputs?: (string | TestPaths)[];
    /** What is not. */
    missing?: (string | TestPaths)[];
    /** What runs were given and became of them; the latest of the slot, unless `number` says another one. */
    runs?: { slot: SlotName, number?: number, state?: RunStateName, settings?: { [name: string]: Json }, properties?: { [name: string]: Json } }[];
    /** How many runs of a workflow were alive at once, at the most. */
    mostAtOnce?: { [workflow: string]: number };
    /** With real commands: what they wrote, and the file or folder beside the test file that it has to be like. */
    files?: { [path: string]: string | { like: string, compare?: "bytes" | "json lines" } };
    /** Looks at everything. Returns nothing or true, or says what is wrong. */
    check?: (result: TestResult) => void | boolean | string | string[];
}

interface ResultRun {
    number: number;
    state: RunStateName;
    dispatchedAt: string;
    endedAt: string | null;
    outcome: string | null;
    settings: { [name: string]: Json } | null;
    properties: { [name: string]: Json } | null;
}

interface ResultSlot {
    workflow: string;
    time: string;
    state: SlotStateName;
    runs: ResultRun[];
}

/** What came of a test. */
interface TestResult {
    /** All slots, or those of a workflow, by time. */
    slots(workflow?: string): ResultSlot[];
    slot(slot: SlotName): ResultSlot | undefined;
    state(slot: SlotName): SlotStateName | undefined;
    runs(workflow?: string): ResultRun[];
    /** All paths that are there. */
    paths(): string[];
}

interface TestOptions {
    /** The clock starts here; slots are from here on. */
    from: Moment;
    /** Slots are before this moment, and the clock stops here. */
    until: Moment;
    /** How much longer the clock goes on, for slots that are not done by then. Default 0. */
    settle?: Span;
    /** The workflows that take part. Default: all. */
    workflows?: string[];
    /** Workflows whose triggers are taken to be met: those before the ones that are tested. */
    met?: string[];
    /** Whether slots before `from` are taken to have succeeded (default), or not to exist. */
    before?: "succeeded" | "nothing";
    /** What comes from outside; there is nothing else. */
    inputs?: (string | TestInput)[];
    /** Registers at the start: by bucket, by key. */
    registers?: { [bucket: string]: { [key: string]: Json } };
    /** What becomes of runs, by workflow: always the same, run by run of a slot, or as a function says; `*` is for all others. */
    runs?: { [workflow: string]: FakeRun | FakeRun[] | ((run: TestRun) => FakeRun | void) };
    actions?: TestAction[];
    /** Runs of all workflows side by side. Default 256. */
    maxRunning?: number;
    /** `real`: commands of workflows that `runs` doesn't name are run, in a folder of the test's own, with `kelos test --real`. */
    executors?: "fake" | "real";
    /** With real commands: files and folders of the project that are copied into the test's folder, such as `bin`. */
    copy?: string[];
    expect: Expectations;
}

declare namespace kelos {
    /** Makes a test: `kelos test` plays the workflows through over a virtual clock, and holds what comes of it against `expect`. */
    function test(name: string, options: TestOptions): void;
}
