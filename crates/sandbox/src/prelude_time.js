// The time objects of the scripts' world: ScheduledTime, SlotID, and a Date and a Math.random that
// answer the same each time. Part of one module with prelude.js, which comes first.

const RealDate = Date;

/** Refuses everything but a whole number. */
function whole(value, where) {
    if (typeof value !== "number" || !Number.isInteger(value)) {
        refuse(`${where}: expected a whole number, not ${describe(value)}`);
    }
    return value;
}

const pad = (value, width = 2) => String(value).padStart(width, "0");

/** Tells the prelude's own calls of a constructor from a script's. */
const INSIDE = Symbol("inside");

/** A moment in UTC, in whole milliseconds. */
class ScheduledTime {
    #ms;

    constructor(value, token) {
        if (token === INSIDE) {
            this.#ms = value;
        } else if (ScheduledTime.is(value)) {
            this.#ms = value.#ms;
        } else if (DateTime.is(value)) {
            this.#ms = value.getMillis();
        } else if (typeof value === "string") {
            const read = host.instant(value);
            if (typeof read === "string") refuse(`new ScheduledTime: ${read}`, "bad-time");
            this.#ms = read;
        } else {
            refuse(`new ScheduledTime: expected a time such as "2015-09-13T13:40Z", not ${describe(value)}`);
        }
    }

    static now() {
        return ScheduledTime.at(host.now());
    }

    static at(ms) {
        return new ScheduledTime(ms, INSIDE);
    }

    static is(value) {
        return value !== null && typeof value === "object" && #ms in value;
    }

    static ms(time) {
        return time.#ms;
    }

    #date() {
        return new RealDate(this.#ms);
    }

    #moved(ms, where) {
        const year = new RealDate(ms).getUTCFullYear();
        if (!(year >= 0 && year <= 9999)) refuse(`${where}: expected a time from the year 0 to the year 9999`);
        return ScheduledTime.at(ms);
    }

    #millis(n, unit, where) {
        return this.#moved(this.#ms + whole(n, where) * unit, where);
    }

    // The day of the month is kept where the month has it; otherwise it's the month's last.
    #months(n, where) {
        const date = this.#date();
        const day = date.getUTCDate();
        date.setUTCDate(1);
        date.setUTCMonth(date.getUTCMonth() + whole(n, where));
        const last = new RealDate(date.getTime());
        last.setUTCMonth(last.getUTCMonth() + 1, 0);
        date.setUTCDate(Math.min(day, last.getUTCDate()));
        return this.#moved(date.getTime(), where);
    }

    getYear() { return this.#date().getUTCFullYear(); }
    getMonth() { return this.#date().getUTCMonth() + 1; }
    getDay() { return this.#date().getUTCDate(); }
    getHour() { return this.#date().getUTCHours(); }
    getMinute() { return this.#date().getUTCMinutes(); }
    getSecond() { return this.#date().getUTCSeconds(); }
    getMillisecond() { return this.#date().getUTCMilliseconds(); }
    getMillis() { return this.#ms; }
    getDateTime() { return new DateTime(this, INSIDE); }

    year() { return pad(this.getYear(), 4); }
    month() { return pad(this.getMonth()); }
    day() { return pad(this.getDay()); }
    hour() { return pad(this.getHour()); }
    minute() { return pad(this.getMinute()); }
    second() { return pad(this.getSecond()); }
    millisecond() { return pad(this.getMillisecond(), 3); }

    plusYears(n) { return this.#months(whole(n, "plusYears") * 12, "plusYears"); }
    plusMonths(n) { return this.#months(n, "plusMonths"); }
    plusDays(n) { return this.#millis(n, 86400000, "plusDays"); }
    plusHours(n) { return this.#millis(n, 3600000, "plusHours"); }
    plusMinutes(n) { return this.#millis(n, 60000, "plusMinutes"); }
    plusSeconds(n) { return this.#millis(n, 1000, "plusSeconds"); }

    minusYears(n) { return this.#months(whole(n, "minusYears") * -12, "minusYears"); }
    minusMonths(n) { return this.#months(-whole(n, "minusMonths"), "minusMonths"); }
    minusDays(n) { return this.#millis(n, -86400000, "minusDays"); }
    minusHours(n) { return this.#millis(n, -3600000, "minusHours"); }
    minusMinutes(n) { return this.#millis(n, -60000, "minusMinutes"); }
    minusSeconds(n) { return this.#millis(n, -1000, "minusSeconds"); }

    compareTo(other) {
        if (!ScheduledTime.is(other)) refuse(`compareTo: expected a ScheduledTime, not ${describe(other)}`);
        return Math.sign(this.#ms - other.#ms);
    }

    equals(other) {
        return ScheduledTime.is(other) && other.#ms === this.#ms;
    }

    toString() {
        return this.#date().toISOString();
    }

    toJSON() {
        return this.toString();
    }

    [Symbol.toPrimitive](hint) {
        return hint === "number" ? this.#ms : this.toString();
    }
}

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December"];

/** What `getDateTime` gives: of the times of Joda, which Celos uses, what scripts call. */
class DateTime {
    #time;

    constructor(time, token) {
        if (token !== INSIDE) refuse("new DateTime: expected scheduledTime.getDateTime(), or new ScheduledTime(\"2015-09-13T13:40Z\")");
        this.#time = time;
    }

    static is(value) {
        return value !== null && typeof value === "object" && #time in value;
    }

    getMillis() { return this.#time.getMillis(); }
    getYear() { return this.#time.getYear(); }
    getMonthOfYear() { return this.#time.getMonth(); }
    getDayOfMonth() { return this.#time.getDay(); }
    getDayOfWeek() { return new RealDate(this.getMillis()).getUTCDay() || 7; }
    getDayOfYear() { return 1 + Math.floor((this.getMillis() - RealDate.UTC(this.getYear(), 0, 1)) / 86400000); }
    getHourOfDay() { return this.#time.getHour(); }
    getMinuteOfHour() { return this.#time.getMinute(); }
    getSecondOfMinute() { return this.#time.getSecond(); }
    getMillisOfSecond() { return this.#time.getMillisecond(); }
    toScheduledTime() { return this.#time; }

    plusWeeks(n) { return this.plusDays(7 * whole(n, "plusWeeks")); }
    minusWeeks(n) { return this.plusDays(-7 * whole(n, "minusWeeks")); }

    isBefore(other) { return this.getMillis() < momentFor(other, "isBefore"); }
    isAfter(other) { return this.getMillis() > momentFor(other, "isAfter"); }
    isEqual(other) { return this.getMillis() === momentFor(other, "isEqual"); }
    equals(other) { return DateTime.is(other) && other.getMillis() === this.getMillis(); }

    /** As it is written, or by a pattern such as `yyyy-MM-dd`. */
    toString(pattern) {
        if (pattern === undefined || pattern === null) return String(this.#time);
        const parts = text(pattern, "DateTime.toString: pattern", "yyyy-MM-dd").matchAll(/'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+/g);
        return [...parts].map(([part, quoted, letter]) => {
            if (quoted !== undefined) return quoted === "" ? "'" : quoted.replace(/''/g, "'");
            return letter === undefined ? part : this.#field(letter, part.length);
        }).join("");
    }

    #field(letter, width) {
        const named = (names, n) => (width > 3 ? names[n - 1] : names[n - 1].slice(0, 3));
        switch (letter) {
            case "y": case "Y": return width === 2 ? pad(this.getYear() % 100) : pad(this.getYear(), width);
            case "M": return width > 2 ? named(MONTHS, this.getMonthOfYear()) : pad(this.getMonthOfYear(), width);
            case "d": return pad(this.getDayOfMonth(), width);
            case "D": return pad(this.getDayOfYear(), width);
            case "e": return pad(this.getDayOfWeek(), width);
            case "E": return named(DAYS, this.getDayOfWeek());
            case "H": return pad(this.getHourOfDay(), width);
            case "m": return pad(this.getMinuteOfHour(), width);
            case "s": return pad(this.getSecondOfMinute(), width);
            case "S": return pad(this.getMillisOfSecond(), 3).padEnd(width, "0").slice(0, width);
            case "Z": return width === 1 ? "+0000" : "+00:00";
            default: refuse(`DateTime.toString: the letter '${letter}' of a pattern is not known: expected y, M, d, D, e, E, H, m, s, S, Z`);
        }
    }

    toJSON() { return this.toString(); }

    [Symbol.toPrimitive](hint) { return hint === "number" ? this.getMillis() : this.toString(); }
}

for (const verb of ["plus", "minus"]) {
    for (const unit of ["Years", "Months", "Days", "Hours", "Minutes", "Seconds"]) {
        DateTime.prototype[verb + unit] = function (n) { return this.toScheduledTime()[verb + unit](n).getDateTime(); };
    }
}

/** The milliseconds of a time of either kind. */
function momentFor(value, where) {
    if (ScheduledTime.is(value) || DateTime.is(value)) return value.getMillis();
    refuse(`${where}: expected a time, not ${describe(value)}`);
}

/** The name of a workflow. */
class WorkflowID {
    #id;

    constructor(id) {
        this.#id = text(id, "new WorkflowID", "my-workflow");
        agreed(host.id(id), "new WorkflowID", "bad-name");
    }

    static is(value) {
        return value !== null && typeof value === "object" && #id in value;
    }

    equals(other) { return WorkflowID.is(other) && other.#id === this.#id; }
    toString() { return this.#id; }
    toJSON() { return this.#id; }
}

/** A slot: whose, and when. */
class SlotID {
    #workflow;
    #time;

    constructor(workflowID, scheduledTime) {
        if (typeof workflowID !== "string" && !WorkflowID.is(workflowID)) {
            refuse(`new SlotID: workflowID: expected a string or a WorkflowID, not ${describe(workflowID)}`);
        }
        if (!ScheduledTime.is(scheduledTime)) {
            refuse(`new SlotID: scheduledTime: expected a ScheduledTime, not ${describe(scheduledTime)}`);
        }
        this.#workflow = String(workflowID);
        this.#time = scheduledTime;
    }

    static is(value) {
        return value !== null && typeof value === "object" && #time in value;
    }

    getWorkflowID() { return this.#workflow; }
    getScheduledTime() { return this.#time; }
    toString() { return `${this.#workflow}@${this.#time}`; }
    toJSON() { return this.toString(); }
}

/** Date in UTC whose "now" is what the host says; made when a script first asks for it. */
function frozenDate() {
    const zoned = /(Z|GMT|UTC|[+-]\d\d:?\d\d)(\s*\(.*\))?\s*$/i;
    const clock = /\d:\d\d/;
    const inUtc = (text) => (clock.test(text) && !zoned.test(text) ? `${text}${/^\d{4}-.*T/.test(text) ? "Z" : " UTC"}` : text);
    const parse = (text) => RealDate.parse(inUtc(String(text)));
    const moment = (args) => {
        if (args.length === 0) return host.now();
        if (args.length > 1) return RealDate.UTC(...args);
        const one = args[0] instanceof RealDate ? args[0].getTime() : args[0];
        if (ScheduledTime.is(one)) return ScheduledTime.ms(one);
        return typeof one === "string" ? parse(one) : one;
    };
    function FrozenDate(...args) {
        if (!new.target) return new RealDate(host.now()).toUTCString();
        return Reflect.construct(RealDate, [moment(args)], new.target);
    }
    const proto = RealDate.prototype;
    const set = (object, name, value) =>
        Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
    for (const part of ["FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
        set(proto, `get${part}`, proto[`getUTC${part}`]);
        set(proto, `set${part}`, proto[`setUTC${part}`]);
    }
    set(proto, "getDay", proto.getUTCDay);
    set(proto, "getTimezoneOffset", () => 0);
    set(proto, "toString", proto.toUTCString);
    for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString", "toDateString", "toTimeString"]) {
        set(proto, name, proto.toISOString);
    }
    set(proto, "constructor", FrozenDate);
    set(FrozenDate, "name", "Date");
    FrozenDate.prototype = proto;
    set(FrozenDate, "now", () => host.now());
    set(FrozenDate, "parse", parse);
    set(FrozenDate, "UTC", RealDate.UTC);
    return FrozenDate;
}

let randomState = 0x2545f491;

/** Numbers that look random and are the same each time (xorshift). */
function random() {
    randomState ^= randomState << 13;
    randomState ^= randomState >>> 17;
    randomState ^= randomState << 5;
    return (randomState >>> 0) / 4294967296;
}

function installTime() {
    // Made on first use: few scripts ask for it, and every file has a world of its own.
    Object.defineProperty(globalThis, "Date", {
        configurable: true,
        enumerable: false,
        get() {
            const made = frozenDate();
            Object.defineProperty(globalThis, "Date", { value: made, writable: true, configurable: true, enumerable: false });
            return made;
        },
        set(value) {
            Object.defineProperty(globalThis, "Date", { value, writable: true, configurable: true, enumerable: true });
        },
    });
    Math.random = random;
    globalThis.ScheduledTime = ScheduledTime;
    globalThis.SlotID = SlotID;
    globalThis.WorkflowID = WorkflowID;
}
