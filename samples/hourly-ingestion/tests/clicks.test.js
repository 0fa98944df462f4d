// Run them with `kelos test`: the clock is virtual, and so are the runs.
const DAY = { from: "2026-01-05T00:00Z", until: "2026-01-06T00:00Z", settle: "2h" };

kelos.test("a day is reported once its last hour is ingested", {
    ...DAY,
    runs: { "*": { takes: "2m" } },
    expect: {
        slots: { "ingest": { succeeded: 24 }, "report": { succeeded: 1 } },
        check: (result) => {
            const start = result.slot("report@2026-01-05T00:00Z").runs[0].dispatchedAt;
            return start.startsWith("2026-01-06T00:07") || "the report began at " + start;
        }
    }
});

kelos.test("an hour that fails for good holds the report of its day, until it runs again", {
    ...DAY,
    runs: { "ingest": (run) => (run.time.getHour() === 9 && run.number <= 6 ? { fails: true } : {}) },
    actions: [{ at: "2026-01-06T01:00Z", rerun: "ingest@2026-01-05T09:00Z", reason: "the source is back" }],
    expect: {
        slots: { "ingest": "succeeded", "report": "succeeded" },
        runs: [{ slot: "ingest@2026-01-05T09:00Z", number: 6, state: "failed" }],
        check: (result) => {
            const start = result.slot("report@2026-01-05T00:00Z").runs[0].dispatchedAt;
            return start.startsWith("2026-01-06T01") || "the report began at " + start;
        }
    }
});

kelos.test("a month is ingested again by a backfill, eight hours at a time", {
    from: "2025-12-01T00:00Z",
    until: "2026-01-01T00:00Z",
    settle: "2d",
    actions: [{ at: "2026-01-01T12:00Z", backfill: "ingest", from: "2025-12-01T00:00Z", until: "2026-01-01T00:00Z", mode: "all" }],
    expect: {
        slots: { "ingest": { succeeded: 744 }, "report": { succeeded: 31 } },
        mostAtOnce: { "ingest": 8 },
        check: (result) => result.runs("ingest").length === 2 * 744 || "expected two runs of each hour"
    }
});

// With `kelos test --real` the commands themselves run, in a temporary folder.
kelos.test("the real commands report a day", {
    ...DAY,
    executors: "real",
    expect: {
        slots: { "report": "succeeded" },
        files: { "data/2026-01-05.report": "expected/report" }
    }
});
