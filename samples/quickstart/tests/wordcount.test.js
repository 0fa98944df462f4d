// Run them with `kelos test`. Nothing is started: the clock is virtual, and so are the inputs and the runs.
celos.importDefaults("quickstart");

// A day, without the workflows that simulate the outside world: here the test delivers.
const DAY = {
    from: "2026-01-05T00:00Z",
    until: "2026-01-06T00:00Z",
    settle: "2h",
    workflows: ["wordcount-nyc", "wordcount-lax", "totals"]
};

// nyc delivers within a minute, lax an hour late.
const delivered = (dc, more) => ({ path: input(dc) + "/_READY", each: "wordcount-" + dc, after: dc === "lax" ? "1h" : 50, ...more });

kelos.test("a day of both data centres is counted and added up", {
    ...DAY,
    inputs: DATA_CENTRES.map((dc) => delivered(dc)),
    runs: { "*": (run) => ({ takes: "5m", writes: [run.workflow + "/${hour}"] }) },
    expect: {
        slots: { "wordcount-nyc": "succeeded", "wordcount-lax": "succeeded", "totals": { succeeded: 24 } },
        outputs: [{ path: "totals/${hour}", each: "totals" }],
        runs: [{
            slot: "totals@2026-01-05T07:00Z",
            settings: { command: ["bin/totals", "data/output/total/2026-01-05/0700", "data/output/nyc/2026-01-05/0700", "data/output/lax/2026-01-05/0700"] }
        }]
    }
});

kelos.test("an hour that lax does not deliver holds its own total only", {
    ...DAY,
    inputs: [delivered("nyc"), delivered("lax", { except: ["2026-01-05T03:00Z"] })],
    expect: {
        slots: { "totals": { succeeded: 23, waiting: 1 } },
        states: {
            "wordcount-lax@2026-01-05T03:00Z": { state: "waiting", because: "data/input/lax/2026-01-05/0300/_READY is not ready" },
            "totals@2026-01-05T03:00Z": { state: "waiting", because: "wordcount-lax@2026-01-05T03:00" }
        }
    }
});

kelos.test("a torn text is counted when it has come again", {
    ...DAY,
    inputs: DATA_CENTRES.map((dc) => delivered(dc)),
    runs: { "wordcount-lax": (run) => (run.time.getHour() === 13 ? { fails: 1, reason: "the text is torn" } : {}) },
    expect: {
        slots: { "wordcount-lax": "succeeded", "totals": "succeeded" },
        runs: [
            { slot: "wordcount-lax@2026-01-05T13:00Z", number: 1, state: "failed" },
            { slot: "wordcount-lax@2026-01-05T13:00Z", number: 2, state: "succeeded" }
        ]
    }
});

// With `kelos test --real` the commands themselves run, in a temporary folder.
kelos.test("the real commands count what the real commands delivered", {
    from: "2026-01-05T12:00Z",
    until: "2026-01-05T14:00Z",
    settle: "2h",
    executors: "real",
    copy: ["bin"],
    expect: {
        slots: { "totals": { succeeded: 2 } },
        runs: [{ slot: "wordcount-lax@2026-01-05T13:00Z", number: 1, state: "failed" }],
        files: { "data/output/total/2026-01-05/1300": "expected/1300" }
    }
});
