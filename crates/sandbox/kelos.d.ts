// The API of workflow scripts. Put this file beside your scripts, or reference it with
//   /// <reference path="kelos.d.ts" />
// for completion and documentation in your editor. It is not needed at run time.

//
// Three global variables, which scripts (most often a defaults file) may set, change what functions do:
//   var CELOS_DEFAULT_HDFS = "hdfs://nameservice1";            file system of celos.hdfsCheckTrigger
//   var CELOS_DEFAULT_OOZIE = "http://oozie:11000/oozie";      URL of celos.oozieExternalService
//   var CELOS_DEFAULT_OOZIE_PROPERTIES = {"user.name": "me"};  properties that all Oozie jobs start from

/** Decides for each slot whether it may start. Created by functions of `celos` only. */
interface Trigger { readonly __kind: "trigger" }
/** Conditions on what is at a path, in addition to its existence. */
interface PathConditions {
    /** Check the files directly in the folder whose names match: `part-*`. `${year}` and the like are replaced. */
    glob?: string;
    /** Minimum number of files: of those that match `glob`, or in the folder, without names that begin with `.` or `_`. */
    minCount?: number;
    /** Minimum size in bytes: of the file, or of the files in the folder together. */
    minBytes?: number;
    /** Minimum number of seconds since the last write. */
    minAgeSeconds?: number;
}
/** Options of a calendar. */
interface CalendarOptions {
    /** The zone of days, weeks and months. Default UTC. */
    timeZone?: string;
    /** The number of hours of an hourly period, counted from midnight in UTC. Default 1. */
    hours?: 1 | 2 | 3 | 4 | 6 | 8 | 12;
    /** The first day of a week. Default `"monday"`. */
    firstDay?: DayOfWeek;
    /** The days of the week that are no business days. Default `["saturday", "sunday"]`. */
    weekend?: DayOfWeek[];
    /** The dates that are no business days, or the name of a text in the defaults folder: `"target2.txt"`, with a date such as `2026-12-25` on each line. */
    holidays?: string[] | string;
    /** The dates from each of which a period reaches to the next, or the name of a text in the defaults folder. The last date is only an end. */
    dates?: string[] | string;
}
type DayOfWeek = "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
/** The times at which a workflow has slots. Created by functions of `celos` only. */
interface Schedule { readonly __kind: "schedule" }
/** The number of slots that may run at the same time. Created by functions of `celos` only. */
interface SchedulingStrategy { readonly __kind: "scheduling strategy" }
/** Permits that runs of several workflows share. Created by functions of `celos` only. */
interface Pool { readonly __kind: "pool" }
/** A condition that is checked after the trigger. Created by functions of `celos` only. */
interface Constraint {
    readonly __kind: "constraint";
    /** If it is not met, the slot waits. */
    waitUntilMet(): Constraint;
    /** If it is not met, the slot is skipped. Not for delays. */
    abortIfNotMet(): Constraint;
}
/** Executes the job of a slot. Created by functions of `celos` only. */
interface ExternalService { readonly __kind: "external service" }

/** A value that can be stored in a register. */
type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A value of a property; numbers and booleans become text. */
type PropertyValue = string | number | boolean | bigint | ScheduledTime | SlotID | undefined;

/** Properties of a job. In text, `${year}` to `${second}` are replaced by the slot's values. */
interface Properties { [name: string]: PropertyValue }

/** A function of the slot that returns the properties of its job; called when a run is started. */
type PropertiesFunction = (slotID: SlotID) => Properties;

/** What happens when daylight saving starts or ends. */
interface DaylightSaving {
    /** Times that do not exist when the clock is put forward: run at the first moment after the gap (default), or not at all. */
    gap?: "shift" | "skip";
    /** Times that exist twice when the clock is put back. Default `auto`: both for "every n minutes", the first for fixed times. */
    fold?: "auto" | "first" | "second" | "both";
}

interface ZoneOptions {
    /** IANA name of the time zone of the cron expression, such as `Europe/Berlin`. Default UTC. */
    timeZone?: string;
    /** What happens when the clocks change. */
    daylightSaving?: DaylightSaving;
}

/** The retry policy. */
interface Retry {
    /** Number of retries after the first attempt. */
    count: number | string;
    /** Delay before the first retry. Default 0. */
    delaySeconds?: number | string;
    /** Whether all delays are equal (default), or each is twice the previous one. */
    backoff?: "fixed" | "exponential";
    /** Maximum delay. */
    maxDelaySeconds?: number | string;
    /** Each delay is shortened by a random amount of up to this many percent. Default 0. */
    jitterPercent?: number | string;
    /** The same as a fraction from 0 to 1. */
    jitter?: number;
    /**
     * What follows a run with an unknown outcome, as after a crash: it is done again up to three times without using up a retry (`"again"`, the default of
     * commands in `kelos.workflow` and in steps of `kelos.flow`, unless `onLost` is `"end"`; for commands only), it counts as a failed attempt (`"retry"`,
     * the default of all others), or the slot fails (`"fail"`). If the run may still be going on, the slot always fails.
     */
    onUnknown?: "again" | "retry" | "fail";
}

/** A person or a team. */
interface Contact {
    name?: string | null;
    email?: string | null;
}

/** The arguments that runs expect, by name: a plain value is a default, from which the type follows. */
interface Parameters {
    [name: string]: null | boolean | number | string | Body[] | Parameter;
}

interface Parameter {
    type: "text" | "integer" | "number" | "boolean" | "date" | "time" | "choice" | "json";
    /** The value where nobody gives one; without it, a request must. A text may have `${year}` and the like. */
    default?: Body;
    /** The texts of a `choice`. */
    choices?: string[];
    /** A description. */
    about?: string;
}

/** The fields that both builders of workflows have. */
/**
 * What happens to a run whose worker on another machine sends no heartbeat any more: once its lease is over its outcome is unknown (`"retry"`, the
 * default: `retry.onUnknown` says what follows), or the slot fails at once (`"end"`). With `"wait 30m"` it goes on for so long without its worker, which may
 * come back to it.
 */
type OnLost = "retry" | "end" | `wait ${number}${"s" | "m" | "h" | "d" | "w"}`;

interface WorkflowBase extends ZoneOptions {
    /** Pools whose permits each of its runs needs, such as `[celos.pool("spark", 4)]`. A run takes all of them or waits. */
    pools?: Pool[];
    /** The arguments that its runs expect, each with a default, such as `{rows: 1000}`; without parameters they take any. */
    parameters?: Parameters;
    /** Conditions that are checked after the trigger, such as `[celos.timeWindow("22:00", "06:00")]`. */
    constraints?: Constraint[];
    /**
     * The paths that its runs write, such as `["/data/${year}-${month}-${day}/orders"]`. A folder stands for all that is in it. Kelos finds
     * by them who writes the path that another workflow's trigger waits for.
     */
    writes?: string[];
    /** No slot before this time (ISO 8601, UTC). Default `1970-01-01T00:00Z`. */
    startTime?: string | ScheduledTime | Date;
    /** No slot at or after this time; of slots about periods none whose period ends later. Default: none. */
    endTime?: string | ScheduledTime | Date;
    /**
     * Runs adjacent slots together, up to `size` of them (2 to 1000): one run is about all of them, from the first to the last. Where fewer are
     * ready they wait for others, up to `delay`: `"10m"`, or seconds. Default of `delay`: none, a run takes what there is. Default: each slot has a
     * run of its own.
     */
    batch?: { size: number | string; delay?: number | string };
    /** The retry policy. Default: no retries. */
    retry?: Retry;
    /** Labels of workers, such as `["gpu", "eu"]`: only a worker that has all of them runs it. For commands and Spark; of a flow, for its steps. */
    runsOn?: string | string[];
    /** What happens to a run whose worker on another machine is lost. */
    onLost?: OnLost;
    /** A description. */
    description?: string;
    /** A web page about it. */
    url?: string;
    /** Whom to ask. */
    contacts?: Contact[];
    /** Tags for searching. */
    tags?: string[];
}

interface WorkflowOptions extends WorkflowBase {
    /** The name of the workflow, unique per server, without a slash. */
    id: string;
    /** The times at which it has slots. */
    schedule: Schedule;
    /** How many of its slots may run at the same time. */
    schedulingStrategy: SchedulingStrategy;
    /** The condition on which a slot may start. */
    trigger: Trigger;
    /** What is executed. */
    externalService: ExternalService;
    /**
     * Which of the times that passed unplanned become slots: those of before the schedule was first seen, or that passed while no server was
     * scheduling or the workflow was paused or removed. `"all"`: all in the planning window (7 days). `"latest"`: none of before it was first
     * seen; later the latest of them. `"skip"`: none. Default, as in Celos: the same as `"all"`. Backfills are always possible.
     */
    catchUp?: "all" | "latest" | "skip";
    /** The version of the project, such as `"1.4"`: runs are marked with it, and `kelos backfill --made-by` finds them by it. Nothing runs again because it changes. */
    version?: string;
    /** Number of immediate retries after a failure. Default 0. For more control use `retry`. */
    maxRetryCount?: number | string;
    /** The retry policy; excludes `maxRetryCount`. */
    retry?: Retry;
    /** The deadline of its slots: one that has not succeeded by then is late. Default: none is. */
    deadline?: Deadline;
    /** A slot that still waits after so many seconds expires. Default: never. */
    waitTimeoutSeconds?: number;
    /**
     * The moment from which `waitTimeoutSeconds` counts: the slot's `"time"`, as in Celos, however late the slot came to be; or the `"opening"`,
     * the moment from which it could first have gone: its time or, if that is later, when it was planned, rerun or opened by a backfill, or when
     * its workflow or backfill was resumed. Default: `"time"`.
     */
    waitTimeoutFrom?: "time" | "opening";
}

/**
 * A deadline: so long after a slot is due (its time, or the end of its period; without a time, its opening), such as `"2h"`, or the first time of
 * the day from then on.
 */
type Deadline = string | {
    /** The time of the day: `"07:30"`. */
    at: string;
    /** The zone of the time. Default: the `timeZone` of the workflow, or UTC. */
    zone?: string;
    /** So many days later, at most 366. Default 0. */
    days?: number;
    /** Only business days count: Monday to Friday. Default: all days. */
    businessDays?: boolean;
    /** Dates that are no business days, `["2026-12-25"]`, or the name of a `.txt` file with a date on each line in the defaults folder. */
    holidays?: string[] | string;
};

/**
 * A secret, by its source: a variable in the environment of the process that starts the run, a file, or what a command prints. It is read when
 * the run starts, stored nowhere, and hidden in all that is shown. The operator of the server decides which sources a project may use.
 */
interface Secret {
    /** `"env:NAME"`, `"file:PATH"` or `"exec:COMMAND"`. By default only variables whose names begin with `KELOS_SECRET_` are allowed. */
    secret: string;
    /** Text before its value, such as `Bearer `. */
    prefix?: string;
}

interface CommandOptions {
    /** Program and arguments. `${year}` and the like are replaced in each; no shell is involved. */
    command?: (string | number)[];
    /**
     * The text of a shell script. It is passed to the shell unchanged: the slot's values are environment
     * variables, so `"${year}"` is expanded by the shell itself and never pasted into the text.
     */
    shell?: string;
    /** Additional environment variables; `${year}` and the like are replaced in the values. A secret is `{secret: "env:KELOS_SECRET_DB"}`. */
    env?: { [name: string]: PropertyValue | Secret };
    /** The user of the system as whom the command runs. The operator of the server has to allow it for the project. */
    runAs?: string;
    /** The working folder; `${year}` and the like are replaced. */
    cwd?: string;
    /** The run is killed, and fails, after this time. */
    timeoutSeconds?: number | string;
    /** Time between SIGTERM and SIGKILL. */
    graceSeconds?: number | string;
    /** Maximum size of the output that is kept. */
    logLimitBytes?: number | string;
    /** Additional properties that are shown with the job. */
    properties?: Properties;
}

/**
 * A workflow of `kelos.workflow`. Its job is a command, whose options stand beside the other fields; for one that is a function of the slot, and for
 * all other jobs, there is `job`.
 */
interface BuilderOptions extends WorkflowBase, CommandOptions {
    /**
     * The times at which it has slots: a cron expression, five fields as in a crontab, `"0 6 * * 1-5"` (1 is Monday), or six or seven as in Quartz
     * (1 is Sunday); `"minutely"`, `"hourly"` or `"daily"` (at midnight); or `celos.dependentSchedule("my-workflow")`, the times of another workflow.
     */
    schedule: "minutely" | "hourly" | "daily" | (string & {}) | Schedule;
    /** Workflows whose slots of the same time have to succeed before; or triggers, such as `celos.covers("hourly")`. */
    after?: string | Trigger | (string | Trigger)[];
    /** The condition on which a slot may start, in addition to `after`. Default: always. */
    trigger?: Trigger;
    /** What is executed, if it is no command: such as `celos.httpExternalService({...})`. Excludes `command` and `shell`. */
    job?: ExternalService;
    /** How many of its slots may run at the same time. Default 1: one after the other, oldest first. */
    concurrency?: number | string;
    /**
     * Which of the times that passed unplanned become slots. `"latest"`, the default: none of before the schedule was first seen; of those that
     * passed while no server was scheduling, or while the workflow was paused or removed, the latest. `"skip"`: none. `"all"`: all in the planning
     * window (7 days), also those of before it was first seen. Backfills are always possible.
     */
    catchUp?: "all" | "latest" | "skip";
    /** The version of the project, such as `"1.4"`: runs are marked with it, and `kelos backfill --made-by` finds them by it. Nothing runs again because it changes. */
    version?: string;
    /** The deadline of its slots: one that has not succeeded by then is late. Default: none is. */
    deadline?: Deadline;
    /** A slot that still waits after so many seconds expires. Default: never. */
    waitTimeoutSeconds?: number | string;
    /**
     * The moment from which `waitTimeoutSeconds` counts: the `"opening"` (default), the moment from which the slot could first have gone, also
     * when it was opened by a backfill or rerun; or the slot's `"time"`.
     */
    waitTimeoutFrom?: "time" | "opening";
}

/** A step of a flow: a command, whose options stand beside the other fields, another `job`, or a wait for a `signal`. */
interface StepOptions extends CommandOptions {
    /** The steps that have to succeed before: one, or several. Their outputs are its inputs. */
    needs?: string | string[];
    /** The step that handles its failure. Several steps may name the same one. */
    onError?: string;
    /** Of a step that handles failures: starts at once, not after the steps that were running when the other one failed. */
    atOnce?: boolean;
    /** The name of an input that is a list: the step is done for each item, with the inputs `item` and `index`. */
    forEach?: string;
    /** With `forEach`: a longer list fails the step. Default 10000. */
    most?: number | string;
    /** With `forEach`: how many items may run at the same time. Default: no limit. */
    concurrency?: number | string;
    /** The name of a signal that it waits for, in place of a job. What the signal says are its outputs. */
    signal?: string;
    /** With `signal`: the step fails if the signal has not come after this time, such as `"2d"`. Default: it waits for ever. */
    within?: number | string;
    /** Its inputs where neither a step before nor the arguments of the run give others. */
    inputs?: { [name: string]: Body };
    /** What is executed, if it is no command: such as `celos.sparkExternalService({...})`. Excludes `command` and `shell`. */
    job?: ExternalService;
    /** The retry policy. Default: no retries. */
    retry?: Retry;
    /** Pools whose permits each of its runs needs. None may be a pool of the flow. */
    pools?: Pool[];
    /** Labels of workers, such as `["gpu", "eu"]`: only a worker that has all of them runs it. Default: those of the flow. */
    runsOn?: string | string[];
    /** What happens to a run whose worker on another machine is lost. Default: as for the flow. */
    onLost?: OnLost;
    /** A description. */
    description?: string;
}

/** A flow of `kelos.flow`: a workflow whose job is a graph of steps. It has no `job`, `command` or `batch`. */
interface FlowOptions extends Omit<BuilderOptions, "schedule" | "job" | "batch" | keyof CommandOptions> {
    /** The times at which it runs, as for `kelos.workflow`. Default: none, it is started on demand or by event schedules. */
    schedule?: BuilderOptions["schedule"];
    /** The user of the system as whom the commands of its steps run. The operator of the server has to allow it for the project. */
    runAs?: string;
    /** The steps by name: letters, digits, `_` and `-`. */
    steps: { [name: string]: StepOptions };
}

/** Anything that can be written as JSON; times and slots become text, and `${year}` and the like are replaced in text. */
type Body = null | boolean | number | string | ScheduledTime | SlotID | Secret | Body[] | { [name: string]: Body | undefined };

/** The text of a header, or the secret that it is. */
type HeaderValue = PropertyValue | Secret;

/** JSON pointers with the expected values; an array lists alternatives. All conditions must hold. */
interface Condition { [pointer: string]: Json }

interface HttpPoll {
    /**
     * The address of the status. `${answer/id}` is the value at `/id` in the JSON answer to the start,
     * `${header/Location}` for a header of that answer. Default: the header `Location`.
     */
    url?: string;
    /** Seconds between two polls. Default 10. */
    everySeconds?: number | string;
    /** The condition of success, such as `{"/status": "SUCCEEDED"}`. */
    done: Condition;
    /** The condition of failure. */
    failed?: Condition;
    /** JSON pointer to the error message in the status. */
    message?: string;
    /** The job is cancelled, and fails, after this time. Default: never. */
    timeoutSeconds?: number | string;
}

interface HttpCancel {
    /** Like the URL of `poll`. Default: the address of the status. */
    url?: string;
    /** Default `DELETE`. */
    method?: string;
}

interface HttpOptions {
    /** The address that starts jobs. */
    url: string;
    /** Default `POST`. */
    method?: string;
    /** Headers of each request. Secrets are sent only to the host of `url`. */
    headers?: { [name: string]: HeaderValue };
    /** Text, or an object that is sent as JSON. */
    body?: Body;
    /** Status codes that mean that the service has accepted the job, such as `[200, "3xx"]`. Default `"2xx"`. */
    expect?: (number | string)[] | number | string;
    /** How to poll for the outcome of the job. Without it the answer to the start is the outcome. */
    poll?: HttpPoll;
    /** How to cancel a job. Without it a killed run is abandoned, and the job continues. */
    cancel?: HttpCancel;
    /** Additional properties that are shown with the job. */
    properties?: Properties;
}

interface KafkaMessageOptions {
    /** The topic. `${year}` and the like are replaced, here and in all other texts. */
    topic: string;
    /** The key of the message. */
    key?: string | Secret;
    /** Text, or what is sent as JSON; `null` deletes the key of a compacted topic. Default: what the run is given, as a JSON object. */
    value?: Body;
    /** Headers. The run and its slot are in `kelos-run` and `kelos-slot`, by which receivers recognise a message that was sent twice. */
    headers?: { [name: string]: string | Secret };
    /** The partition. Default: that of the key, or any. */
    partition?: number;
    /** The name of the cluster in the file of `--config`. Needed only if that has several. */
    cluster?: string;
    /** Additional properties that are shown with the job. */
    properties?: Properties;
}

interface SparkOptions {
    /** The application: a jar or a Python file. `${year}` and the like are replaced, here and in all other texts. */
    application: string;
    /** The main class, for jars. */
    class?: string;
    /** Arguments of the application. */
    args?: PropertyValue[];
    /** Such as `yarn`, `spark://host:7077`, `local[2]`. Default: Spark's configuration. */
    master?: string;
    /** Where the driver runs: in `spark-submit` (default), or on the cluster. */
    deployMode?: "client" | "cluster";
    /** Settings of Spark, such as `{"spark.executor.memory": "2g"}`. */
    conf?: { [name: string]: PropertyValue };
    /** The name of the application in Spark. */
    name?: string;
    /** Additional jars. */
    jars?: string[];
    /** Additional Python files. */
    pyFiles?: string[];
    /** The program. Default: `bin/spark-submit` below `SPARK_HOME`, or the one on the server's path. */
    sparkSubmit?: string;
    /** Additional environment variables, also secrets: `{secret: "env:KELOS_SECRET_DB"}`. */
    env?: { [name: string]: PropertyValue | Secret };
    /** The user of the system as whom `spark-submit` runs. The operator of the server has to allow it for the project. */
    runAs?: string;
    /** The working folder. */
    cwd?: string;
    /** The run is killed, and fails, after this time. */
    timeoutSeconds?: number | string;
    /** Time between SIGTERM and SIGKILL. */
    graceSeconds?: number | string;
    /** Maximum size of the output that is kept. */
    logLimitBytes?: number | string;
    /** Additional properties that are shown with the job. */
    properties?: Properties;
}

/** A time in UTC, in whole milliseconds. */
declare class ScheduledTime {
    /** Parses a time such as `2015-09-13T13:40Z`. */
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
    /** The same as a Joda time, as in Celos. */
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
    /** Keeps the day of the month if the month has it; otherwise uses its last day. */
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
    /** Negative, zero or positive, if this time is before, at or after the other. */
    compareTo(other: ScheduledTime): number;
    equals(other: unknown): boolean;
    /** `2015-09-13T13:40:00.000Z` */
    toString(): string;
}

/** The methods of Joda times that scripts of Celos call. */
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
    /** `2015-09-13T13:40:00.000Z`, or formatted by a Joda pattern such as `yyyy-MM-dd`. */
    toString(pattern?: string): string;
}

/** The name of a workflow, as in Celos. */
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

/** The identifiers of a job with their values, as text: `{date: "20140601", client: "7"}`. */
interface JobIds { [identifier: string]: string }
/** The same where a function names a job: numbers become text. */
interface NamedIds { [identifier: string]: PropertyValue }

/** The values of an identifier: any text, an integer, a day such as `20140601` or `2014-06-01`, a list of choices, a pattern. */
type IdentifierKind = "text" | "integer" | "date" | "yyyy-mm-dd" | string[] | RegExp | { pattern: string | RegExp }
    | { kind: "integer"; min?: number; max?: number } | IdentifierFunction;
/**
 * Returns the normal form of the text that somebody typed, or rejects it: with null, false, or an error. It is called when a person
 * names a job, and once for each listed value.
 */
type IdentifierFunction = (written: string) => string | number | null | undefined | false;

/** Jobs that a job depends on. Values of identifiers are listed by name; `"all"` means all values of the parents' apps. */
interface JobGroup {
    /** The apps of these jobs. */
    app_name: string | string[];
    /** Only these jobs. */
    job_id?: string[];
    [identifier: string]: string | (string | number)[] | undefined;
}

/** Dependencies defined by two functions: each must be the inverse of the other (`kelos check` tests that). */
interface JobFunctions {
    /** The apps whose jobs may be parents. */
    app_name: string | string[];
    /** The parents of a job of this app. */
    parentsOf: (ids: JobIds) => [app: string, ids: NamedIds][];
    /** The jobs of this app that wait for a job of another one. */
    childrenOf: (app: string, ids: JobIds) => NamedIds[];
}

/** An app: a workflow whose slots are jobs with ids. The keys are those of a tasks.json. */
interface AppOptions {
    /** The template of job ids, such as `{date}_{client}`. */
    job_id?: string;
    /** All values of an identifier, if they are known in advance: a list, or a range such as `"10:20:2"`. */
    autofill_values?: { [identifier: string]: (string | number)[] | string };
    /** One group, or groups by name: all jobs of any one group are enough. With a list of groups all of them are needed. */
    depends_on?: JobGroup | JobFunctions | { [group: string]: JobGroup | JobGroup[] | JobFunctions };
    /** Only jobs with one of these values run; the others are skipped. */
    valid_if_or?: { [identifier: string]: (string | number)[] };
    /** Only jobs for which it returns true run, in addition to `valid_if_or`. */
    valid?: (ids: JobIds) => boolean;
    /** A trigger in addition to the parents. */
    trigger?: Trigger;
    /** Conditions that are checked after parents and trigger. */
    constraints?: Constraint[];
    /** `bash` (default), `pyspark`, or a program in the folder `plugins`. */
    job_type?: string;
    /** A shell command in which `{date}` stands for a value, quoted for the shell; `{date:raw}` for the unquoted value. */
    bash_cmd?: string;
    /** The user of the system as whom its jobs run. The operator of the server has to allow it for the project. */
    runAs?: string;
    /** Instead of `job_type`: its functions get the identifiers of the job. */
    externalService?: ExternalService;
    /** Instead of `job_type`: each job is a run of a flow with these steps, as of `kelos.flow`. */
    steps?: { [name: string]: StepOptions };
    /** The Python module that Spark runs. */
    pymodule?: string;
    spark_conf?: { [name: string]: string | number | boolean };
    env?: { [name: string]: string | Secret };
    env_from_os?: string[];
    uris?: string[];
    read_fp?: string;
    write_fp?: string;
    minPartitions?: number;
    /** Maximum number of concurrent jobs; no limit by default. */
    concurrency?: number;
    /** The deadline of its jobs, counted from the opening of each: one that has not succeeded by then is late. */
    deadline?: Deadline;
    /** Total number of attempts, 5 by default. */
    max_retry?: number;
    /** Seconds after which a job is killed and counts as failed. */
    timeout?: number;
    /** Pools whose permits each of its jobs needs. */
    pools?: Pool[];
    /** Labels of workers, such as `["gpu", "eu"]`: only a worker that has all of them runs its jobs. */
    runs_on?: string[];
    /** What happens to a run whose worker on another machine is lost. */
    on_lost?: OnLost;
    /** The arguments that its jobs expect, each with a default, such as `{rows: 1000}`; without parameters they take any. */
    parameters?: Parameters;
    /**
     * Opens jobs at the times of a cron expression: `identifier` is a date, the others need `autofill_values`. `catchUp` says which of the times that
     * passed unplanned open jobs, as for workflows: by default `"latest"`.
     */
    feed?: { identifier: string; cron: string; zone?: string; catchUp?: "all" | "latest" | "skip" };
    /** The paths that its jobs write, such as `["/data/{date}/{client}"]`. A folder stands for all that is in it. */
    writes?: string[];
    /** Further keys, for programs in the folder `plugins`. */
    [own: string]: unknown;
}

/** Settings of all apps of a graph. */
interface GraphOptions {
    /** The template of job ids of apps that have none. */
    template?: string;
    /** The values of each identifier; any text by default. */
    identifiers?: { [identifier: string]: IdentifierKind };
}

/** Whether a program is a workflow, which schedules can run, or something else, whose ends they can wait for. */
type ProgramTypeName = "WORKFLOW" | "SPARK" | "MAPREDUCE" | "SERVICE" | "WORKER" | "FLOW";
/** The outcome of a run of a program. */
type ProgramStatusName = "COMPLETED" | "FAILED" | "KILLED" | "succeeded" | "failed" | "killed";
type TimeUnitName = "MILLISECONDS" | "SECONDS" | "MINUTES" | "HOURS" | "DAYS";

/** The application of a file. Missing parts are taken from the file's name. */
interface ApplicationOptions {
    /** Default `default`. */
    namespace?: string;
    /** Default: the name of the file without `.js`. */
    name?: string;
    /** Default `-SNAPSHOT`. */
    version?: string;
    /**
     * Whether the application's schedules are replaced by those of the file whenever it changes (true), or keep the changes that people
     * made. Default: the setting of the server.
     */
    "app.deploy.update.schedules"?: boolean | "true" | "false";
}

interface ProgramOptions {
    /** Its kind. Only workflows, the default, can be scheduled. */
    kind?: ProgramTypeName;
    description?: string;
    /** The retry policy, whoever started the run. */
    retry?: Retry;
    maxRetryCount?: number | string;
    pools?: Pool[];
    /** The arguments that its runs expect, such as `{day: {type: "date"}, rows: 1000}`; without parameters they take any. */
    parameters?: Parameters;
    /** Labels of workers, such as `["gpu", "eu"]`: only a worker that has all of them runs it. For commands and Spark. */
    runsOn?: string | string[];
    /** What happens to a run whose worker on another machine is lost. */
    onLost?: OnLost;
}

/** Properties of a schedule, which its runs get as arguments; values that are not text become JSON. */
interface ScheduleProperties { [name: string]: PropertyValue | Body }

/** A complete schedule, for `schedule` to register. */
interface BuiltSchedule { readonly __kind: "event schedule" }

/** Describes a schedule. Its trigger comes last. */
interface ScheduleBuilder {
    setDescription(description: string): ScheduleBuilder;
    withDescription(description: string): ScheduleBuilder;
    /** Arguments of its runs. */
    setProperties(properties: ScheduleProperties): ScheduleBuilder;
    withProperties(properties: ScheduleProperties): ScheduleBuilder;
    /** How long a slot may wait for trigger and constraints after its first fact. Default one day. */
    setTimeout(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** The deadline of a slot, counted from its opening: one that has not succeeded by then is late. */
    withDeadline(deadline: Deadline): ScheduleBuilder;
    /** Fewer live runs of the program than this. Aborts by default. */
    withConcurrency(runs: number): ScheduleBuilder;
    /** This much time after the first fact. Always waits. */
    withDelay(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** A time of day between two times, such as `"22:00"` and `"06:00"`. Waits by default. */
    withTimeWindow(start: string, end: string, zone?: string): ScheduleBuilder;
    /** This much time after the start of the program's last successful or live run. Aborts by default. */
    withDurationSinceLastRun(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** The previous constraint waits. */
    waitUntilMet(): ScheduleBuilder;
    /** The previous constraint aborts. */
    abortIfNotMet(): ScheduleBuilder;
    /** The default time zone of its cron expressions and windows. Default UTC. */
    timeZone(zone: string): ScheduleBuilder;
    /** Nothing fires before this time. */
    startTime(time: string | ScheduledTime | Date): ScheduleBuilder;
    /** Nothing fires at or after this time. */
    endTime(time: string | ScheduledTime | Date): ScheduleBuilder;
    /** Each cron time is delayed by a random amount up to this. */
    jitter(amount: number, unit: TimeUnitName): ScheduleBuilder;
    /** Which misfires count, that is, cron times that passed while no server was scheduling: none, the latest (default), or all. */
    catchUp(policy: "skip" | "latest" | "all"): ScheduleBuilder;
    /** It starts enabled; without this somebody has to enable it. */
    enabled(on?: boolean): ScheduleBuilder;
    /** When a time of a cron expression passes: five fields as in a crontab, `"0 4 * * 1"` (1 is Monday), or six as in Quartz, with seconds first (1 is Sunday). */
    triggerByTime(cron: string): BuiltSchedule;
    /** After this many new partitions of a dataset. */
    triggerOnPartitions(dataset: string, partitions: number): BuiltSchedule;
    triggerOnPartitions(namespace: string, dataset: string, partitions: number): BuiltSchedule;
    /** When a run of a program ends: of this application, or of another one. Without a status, when it fails. */
    triggerOnProgramStatus(type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    triggerOnProgramStatus(application: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    triggerOnProgramStatus(namespace: string, application: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    triggerOnProgramStatus(namespace: string, application: string, version: string, type: ProgramTypeName, program: string, ...statuses: ProgramStatusName[]): BuiltSchedule;
    /** When any trigger is met, including those of functions of `celos`. */
    triggerOn(trigger: Trigger): BuiltSchedule;
}

/** Creates triggers to combine. `celos` has more of them. */
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
    /** Sets the application of the file; must come first. */
    function application(options: ApplicationOptions): void;
    /** Defines a job that people start, and schedules run. Returns its name. */
    function program(name: string, job: ExternalService, options?: ProgramOptions): string;
    /** Begins a schedule, for `schedule` to register once it is complete. */
    function buildSchedule(name: string, type: "WORKFLOW", program: string): ScheduleBuilder;
    /** Registers a schedule that was built. */
    function schedule(built: BuiltSchedule): void;
    /** Begins a schedule that is registered by its trigger. */
    function schedule(name: string, program: string): ScheduleBuilder;
    function schedule(name: string, type: "WORKFLOW", program: string): ScheduleBuilder;
    function getTriggerFactory(): TriggerFactory;
    const ProgramType: { readonly [T in ProgramTypeName]: T };
    const ProgramStatus: { readonly COMPLETED: "COMPLETED", readonly FAILED: "FAILED", readonly KILLED: "KILLED" };
    const TimeUnit: { readonly [U in TimeUnitName]: U };
    /** Time zones as in Java; a name works as well. */
    const TimeZone: { getTimeZone(id: string): string };
    /** Maps as in Java; an object works as well. */
    const ImmutableMap: {
        of(...keysAndValues: any[]): ScheduleProperties;
        builder(): { put(key: string, value: any): any, build(): ScheduleProperties };
    };

    /** Met after this many (default 1) new partitions of a dataset while the slot waits. */
    function partitionsTrigger(dataset: string, partitions?: number): Trigger;
    /** Met when a run of a program, of this application or any other workflow, ends with this status while the slot waits. */
    function programStatusTrigger(program: string, ...statuses: ProgramStatusName[]): Trigger;
    /** Met when a time of a cron expression of five fields (crontab's) or six (Quartz's, with seconds first) passes while the slot waits. */
    function cronTrigger(cron: string, zone?: string): Trigger;
    /** Met when a signal is published while the slot waits. */
    function signalTrigger(name: string): Trigger;

    /** Fewer live runs of the workflow than this. Aborts by default. */
    function concurrency(runs: number): Constraint;
    /** This much time after the slot was opened. Always waits. */
    function delay(amount: number, unit: TimeUnitName): Constraint;
    /** A time of day between two times, such as `"22:00"` and `"06:00"`. Waits by default. */
    function timeWindow(start: string, end: string, zone?: string): Constraint;
    /** This much time after the start of the last successful or live run. Aborts by default. */
    function sinceLastRun(amount: number, unit: TimeUnitName): Constraint;

    /** Defines a workflow, with the defaults of Celos. `kelos.workflow` is shorter, and has defaults of its own. */
    function defineWorkflow(options: WorkflowOptions): void;
    /** The old name of `defineWorkflow`. */
    function addWorkflow(options: WorkflowOptions): void;
    /** Defines apps, by name: workflows whose slots are jobs with ids, and their dependencies. */
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
    /** Slots at the times of a cron expression: five fields as in a crontab, `"15 10 * * 1-5"` (1 is Monday), or six or seven as in Quartz, `"0 15 10 * * ?"` (1 is Sunday). */
    function cronSchedule(expression: string, options?: ZoneOptions): Schedule;
    /**
     * A slot for each period of a calendar: each is named by the start of its period, and due once that has ended. `${year}` and the like are of the
     * start, `${end_year}` and the like of the end, in the calendar's zone. A day of a zone has 23, 24 or 25 hours.
     */
    function calendar(period: "hourly" | "daily" | "weekly" | "monthly" | "business" | "dates", options?: CalendarOptions): Schedule;
    /** The schedule of another workflow. */
    function dependentSchedule(workflowID: string): Schedule;

    /** Runs ready slots oldest first, at most `concurrency` (default 1) at the same time. */
    function serialSchedulingStrategy(concurrency?: number | string): SchedulingStrategy;

    /**
     * A pool of `size` permits, of which each run takes `permits` (default 1), in addition to the limit of its workflow and the global
     * limit. Workflows share a pool by its name, across files; if their sizes differ, the smallest applies.
     */
    function pool(name: string, size: number | string, permits?: number | string): Pool;

    /**
     * A pool that limits how often runs start: `tokens` in so many `seconds`, at an even pace. A run takes `permits` tokens (default 1)
     * when it starts, and spends them; `burst` tokens add up while nobody takes them (default: as many as a run takes). `concurrent`
     * limits the live runs, too. A run that waits for a token holds no permit of another pool. If rates differ, the slowest applies.
     */
    function rate(name: string, tokens: number, seconds: number, options?: { burst?: number; concurrent?: number; permits?: number }): Pool;

    /** Always met. */
    function alwaysTrigger(): Trigger;
    /**
     * Met when a file or folder exists in HDFS. `${year}`, `${month}`, `${day}`, `${hour}`, `${minute}` and
     * `${second}` are replaced by the slot's values. A path with a scheme, such as `file:///data`, names its
     * own file system; otherwise `fs` or the variable `CELOS_DEFAULT_HDFS` does.
     */
    function hdfsCheckTrigger(path: string, fs?: string, conditions?: PathConditions): Trigger;
    /**
     * Met when something exists at a URI: `s3://bucket/in/${year}/_READY`, `gs:`, `abfs:`, `hdfs:`, `webhdfs:`, `sftp:`, `http:`,
     * `https:` or `file:`. Credentials come from the server's environment, never from here. On object stores a slash at
     * the end means anything below that prefix.
     */
    function pathTrigger(uri: string, conditions?: PathConditions): Trigger;
    /**
     * Met when a file or folder exists on the server's own disk. `${year}` and the like are replaced. A relative path is
     * resolved in the server's working folder: with `kelos up` that is the folder of the scripts.
     */
    function fileCheckTrigger(path: string, conditions?: PathConditions): Trigger;
    /** Met when the slot of another workflow at the same time has succeeded. */
    function successTrigger(workflowID: string): Trigger;
    /**
     * Met when each slot of another workflow whose period intersects the slot's own has succeeded: the 23, 24 or 25 hours of a day, the day that
     * an hour lies in. A period reaches from the time of a slot to the next. `from` shifts the start of the slot's own period, `to` the end:
     * `celos.covers("hourly", {from: "-1d"})` are the hours of the day before, too. Of its own workflow only earlier slots count.
     */
    function covers(workflowID: string, options?: { from?: number | string; to?: number | string }): Trigger;
    /**
     * Met when a job of an app has succeeded. In its id `${year}`, `${month}`, `${day}` and the like are replaced by the slot's
     * values: `celos.jobTrigger("model", "${year}${month}${day}_1")`.
     */
    function jobTrigger(workflowID: string, jobID: string): Trigger;
    /** Met when all are; without arguments always. */
    function andTrigger(...triggers: Trigger[]): Trigger;
    /** Met when one is; without arguments never. */
    function orTrigger(...triggers: Trigger[]): Trigger;
    /** Met when the other is not. */
    function notTrigger(trigger: Trigger): Trigger;
    /** Met when this many seconds have passed since the slot's time. */
    function delayTrigger(seconds: number): Trigger;
    /** Evaluates the other trigger for the time this many seconds later, or earlier if negative. */
    function offsetTrigger(seconds: number, trigger: Trigger): Trigger;
    /**
     * Met when the function returns `true`; not yet with `false`; `"never"` skips the slot.
     * The function is called repeatedly while the slot waits, and must be fast.
     */
    function functionTrigger(fn: (slotID: SlotID, now: ScheduledTime) => boolean | "never"): Trigger;

    /**
     * Runs slots with Oozie. Properties start from `CELOS_DEFAULT_OOZIE_PROPERTIES`; the URL defaults to
     * `CELOS_DEFAULT_OOZIE`.
     */
    function oozieExternalService(properties: Properties | PropertiesFunction, oozieURL?: string): ExternalService;
    /** Runs slots as commands on the server's machine. */
    function commandExternalService(options: CommandOptions | ((slotID: SlotID) => CommandOptions) | ((ids: JobIds) => CommandOptions)): ExternalService;
    /**
     * Runs slots as jobs of an HTTP service. Each start has the name of the run in the header
     * `Idempotency-Key`; it is repeated, with the same key, while the service is down or busy.
     */
    function httpExternalService(options: HttpOptions | ((slotID: SlotID) => HttpOptions)): ExternalService;
    /** Runs slots as Spark applications, with `spark-submit` on the server's machine. */
    function sparkExternalService(options: SparkOptions | ((slotID: SlotID) => SparkOptions)): ExternalService;
    /**
     * Runs slots with an executor of the program that embeds Kelos. It defines its own settings; `${year}` and the like
     * are replaced in their text.
     */
    function externalService(options: { executor: string; settings?: { [name: string]: Body | undefined }; properties?: Properties }): ExternalService;

    /** A function of the slot that adds `CELOS_DEFAULT_OOZIE_PROPERTIES` to properties. */
    function makePropertiesGen(properties: Properties | PropertiesFunction): (slotID: SlotID) => { [name: string]: string };
    /** Copies all properties of `source` over `target`, and returns `target`. */
    function mergeProperties(source: object, target: object): object;
    /** Whether something exists in HDFS now. A file that calls it is evaluated again at each load. */
    function hdfsCheck(path: string, slotID?: SlotID | null, fs?: string): boolean;
    /** The path itself; in a test with real commands the same path below the test's own folder. */
    function hdfsPath(path: string): string;
    /** The name itself; in a test with real commands a name that no other test uses. */
    function databaseName(name: string): string;
    /** Whether `kelos test` is running; false on servers. */
    function isRunningInTestMode(): boolean;
    /** Replaces `${year}`, `${month}`, `${day}`, `${hour}`, `${minute}` and `${second}`. */
    function replaceTimeVariables(template: string, scheduledTime: ScheduledTime): string;
    /** The value of a register, or null. When it changes the file is evaluated again. A bucket of another project needs its consent on servers with `--auth`. */
    function getRegister(bucket: string, key: string): Json;
    /** Calls a function for each register of a bucket, sorted by key. */
    function forEachRegister(bucket: string, fn: (key: string, value: Json) => void): void;
}

/** The names of what another project may see, beyond the states of slots that its triggers wait for. */
interface Sees {
    /** Workflows: the arguments and the outputs of their runs. */
    runs?: string[];
    /** Datasets: the facts about their partitions. */
    datasets?: string[];
    /** Signals, with their payloads. */
    signals?: string[];
    /** Buckets of registers, which its scripts may read. */
    registers?: string[];
}

/** The names of what another project may send. */
interface Sends {
    /** Workflows that its event schedules may run, and its jobs may open. */
    starts?: string[];
    /** Programs whose ends it may report. */
    ends?: string[];
    /** Datasets whose partitions it may report. */
    datasets?: string[];
    /** Signals that it may give. */
    signals?: string[];
}

interface ProjectOptions {
    /** What other projects may see and send, by their names; `"*"` for all. It counts on servers with `--auth`. */
    shares: { [project: string]: { sees?: Sees; sends?: Sends } };
}

declare namespace kelos {
    /** Says of the project of this file what it shares with others. */
    function project(options: ProjectOptions): void;
    /** Defines a workflow. Returns its name, for `after` of others. */
    function workflow(name: string, options: BuilderOptions): string;
    /** Defines a flow: a workflow whose job is a graph of steps, between which data is passed. Returns its name. */
    function flow(name: string, options: FlowOptions): string;
    /**
     * A job that sends a message to a topic of Kafka; it has succeeded once the cluster has confirmed it. Its output `message` is the name of the
     * message: `orders/0/17`. Needs a server with Kafka: `kafka` in the file of `--config`.
     */
    function kafkaMessage(options: KafkaMessageOptions | ((slotID: SlotID) => KafkaMessageOptions)): ExternalService;
}

/** The same as `celos.importDefaults`. */
declare function importDefaults(name: string): unknown;

// The functions of event schedules also exist without `celos.`, unless a script defines these names itself.
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
// The rest is only for test files (`tests/*.test.js`, run by `kelos test`). They may use everything above, too, except
// `celos.defineWorkflow`, `kelos.workflow` and `kelos.flow`.

/** A time in UTC: text such as `2026-01-05T03:00Z`. */
type Moment = string | ScheduledTime | Date;
/** A number of seconds, or text such as `90s`, `15m`, `36h`, `7d` or `2w`. */
type Span = number | string;
/** `my-workflow@2026-01-05T03:00Z`, or a SlotID; of a run with a name `my-flow@order-42`; of a step of a flow `my-flow.load@2026-01-05T03:00Z`, or `my-flow.load:2@…` for the item 2 of its list. */
type SlotName = string | SlotID;
type SlotStateName = "waiting" | "held" | "queued" | "dispatched" | "running" | "backoff" | "succeeded" | "failed" | "expired" | "skipped" | "killed";
type RunStateName = "dispatched" | "running" | "succeeded" | "failed" | "killed" | "unknown";

/** One path, or one for each of several slots. A path without a scheme exists in any file system. */
interface TestPaths {
    /** With `each`, `${year}` and the like are replaced, or a function of the slot returns the path; null omits a slot. */
    path: string | ((slotID: SlotID) => string | null);
    /** The slots: those of a workflow within the test, or the times of a cron expression. */
    each?: string;
    /** Times to omit. */
    except?: Moment[];
    /** The only times to use. */
    only?: Moment[];
}

/** An external input. */
interface TestInput extends TestPaths {
    /** When it appears. Default: it exists from the start. */
    at?: Moment;
    /** With `each`: how long after the slot's time it appears. Default 0. */
    after?: Span | ((slotID: SlotID) => Span);
    /** When it vanishes. */
    goneAt?: Moment;
    /** How long after it appeared it vanishes. */
    goneAfter?: Span;
    /** Its size in bytes. */
    size?: number;
    /** Its content. */
    content?: string;
    /** A file or folder beside the test file that is copied. */
    from?: string;
}

/** The outcome of a fake run. Default: it takes a minute and succeeds. */
interface FakeRun {
    takes?: Span;
    /** It fails: always, the first n runs of a slot, or always with this reason. */
    fails?: boolean | number | string;
    /** The reason of the failure. */
    reason?: string;
    /** Its outcome is unknown. */
    unknown?: boolean;
    /** It never ends. */
    hangs?: boolean;
    /** Paths that it writes when it succeeds; `${year}` and the like are replaced. */
    writes?: (string | { path: string, size?: number, content?: string })[];
    /** Its outputs, however it ends. Of a step that waits for a signal: what the signal says; `takes` is then how long after the step began to wait it comes. */
    gives?: { [name: string]: Json };
}

/** A run, as given to a function that returns its outcome. */
interface TestRun {
    workflow: string;
    /** Of a step of a flow: its name, and the number of the item of its list. */
    step: string | null;
    item: number | null;
    /** The key of the slot, or of the run of the flow: `2026-01-05T03:00:00.000Z`, `.order-42`. */
    key: string;
    /** None of a run that has a name in place of a time. */
    slot: SlotID;
    time: ScheduledTime;
    /** What it is given: the inputs of a step, or the arguments. Of a step that waits for a signal: nothing. */
    inputs: { [name: string]: Json };
    /** From 1. */
    number: number;
    /** The settings of the job, with templates filled in. */
    settings: { [name: string]: Json };
    properties: { [name: string]: Json };
}

/** An action of a person at a time. One of `rerun`, `kill`, `pause`, `resume`, `backfill`, `setRegister`, `start` and `signal`. */
interface TestAction {
    at: Moment;
    /** The reason. */
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
    /** The workflow that is started. */
    start?: string;
    /** With `start`: a step of a run of the flow that has ended, such as `"etl.load@order-42"`, which alone is done again. */
    step?: SlotName;
    /** With `start`: the name of the run, and its arguments. */
    name?: string;
    arguments?: ScheduleProperties;
    /** The name of a signal. */
    signal?: string;
    /** With `signal`: the run of a flow, and what the signal says. */
    to?: SlotName;
    payload?: Json;
    /** The bucket. */
    setRegister?: string;
    key?: string;
    value?: Json;
}

/** The expectations of a test. At least one field. */
interface Expectations {
    /** The states of a workflow's slots, or of those of a step (`my-flow.load`): one for all of them, or the number in each; a state that isn't listed must have none. */
    slots?: { [workflow: string]: SlotStateName | { [state in SlotStateName]?: number } };
    /** The states of single slots; `because` is a part of the reason that `kelos why` would give. */
    states?: { [slot: string]: SlotStateName | "recovered" | { state: SlotStateName | "recovered", because?: string } };
    /** Paths that exist. */
    outputs?: (string | TestPaths)[];
    /** Paths that don't exist. */
    missing?: (string | TestPaths)[];
    /** Settings, outcomes, inputs and outputs of runs; of the latest run of the slot, unless `number` is given. */
    runs?: { slot: SlotName, number?: number, state?: RunStateName, settings?: { [name: string]: Json }, properties?: { [name: string]: Json }, inputs?: { [name: string]: Json }, gives?: { [name: string]: Json } }[];
    /** The maximum number of runs of a workflow that were live at the same time. */
    mostAtOnce?: { [workflow: string]: number };
    /** With real commands: what they wrote, and the file or folder beside the test file to compare it with. */
    files?: { [path: string]: string | { like: string, compare?: "bytes" | "json lines" } };
    /** A function of the whole result. Returns nothing or true, or a description of what is wrong. */
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
    inputs: { [name: string]: Json };
    gives: { [name: string]: Json } | null;
}

interface ResultSlot {
    /** The workflow, or `my-flow.load` for a step. */
    workflow: string;
    key: string;
    time: string | null;
    state: SlotStateName;
    runs: ResultRun[];
}

/** The result of a test. */
interface TestResult {
    /** All slots, or those of a workflow, by time. */
    slots(workflow?: string): ResultSlot[];
    slot(slot: SlotName): ResultSlot | undefined;
    state(slot: SlotName): SlotStateName | undefined;
    runs(workflow?: string): ResultRun[];
    /** All paths that exist. */
    paths(): string[];
}

interface TestOptions {
    /** The clock starts here; slots are at this time or later. */
    from: Moment;
    /** Slots are before this time, and the clock stops here. */
    until: Moment;
    /** How much longer the clock runs, for slots that have not ended by then. Default 0. */
    settle?: Span;
    /** The workflows under test. Default: all. */
    workflows?: string[];
    /** Workflows whose triggers count as met: those upstream of the ones under test. */
    met?: string[];
    /** Whether slots before `from` count as succeeded (default), or don't exist. */
    before?: "succeeded" | "nothing";
    /** External inputs; no others exist. */
    inputs?: (string | TestInput)[];
    /** Registers at the start: by bucket, by key. */
    registers?: { [bucket: string]: { [key: string]: Json } };
    /** Outcomes of runs, by workflow or step (`my-flow.load`): always the same, run by run of a slot, or from a function; `*` is for all others. */
    runs?: { [workflow: string]: FakeRun | FakeRun[] | ((run: TestRun) => FakeRun | void) };
    actions?: TestAction[];
    /** Maximum number of concurrent runs of all workflows. Default 256. */
    maxRunning?: number;
    /** `real`: commands of workflows that `runs` doesn't list are executed, in a folder of the test's own, by `kelos test --real`. */
    executors?: "fake" | "real";
    /** With real commands: files and folders of the project that are copied into the test's folder, such as `bin`. */
    copy?: string[];
    expect: Expectations;
}

declare namespace kelos {
    /** Defines a test: `kelos test` runs the workflows on a virtual clock, and compares the result with `expect`. */
    function test(name: string, options: TestOptions): void;
}
