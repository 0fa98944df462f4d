// Run them with `kelos test`: the clock is virtual, and so are the runs.
const NIGHT = { from: "2026-01-05T00:00Z", until: "2026-01-06T00:00Z" };
const PARTS = Array.from({ length: 20 }, (_, n) => "sum-" + String(n + 1).padStart(2, "0"));

kelos.test("the table is loaded once all parts are summed up, four at a time", {
    ...NIGHT,
    runs: { "*": { takes: "5m" } },
    expect: {
        slots: Object.fromEntries(["extract", ...PARTS, "load"].map((workflow) => [workflow, { succeeded: 1 }])),
        check: (result) => {
            // Twenty parts in five rounds of five minutes, after five minutes of extraction.
            const start = result.slot("load@2026-01-05T03:00Z").runs[0].dispatchedAt;
            return start.startsWith("2026-01-05T03:30") || "the load began at " + start;
        }
    }
});

kelos.test("a part that fails is tried again, each time after twice as long", {
    ...NIGHT,
    runs: { "sum-13": { takes: 0, fails: 3, reason: "the connection was reset" }, "*": { takes: 0 } },
    expect: {
        slots: { "load": "succeeded" },
        runs: [{ slot: "sum-13@2026-01-05T03:00Z", number: 4, state: "succeeded" }],
        check: (result) => {
            const starts = result.runs("sum-13").map((run) => Date.parse(run.dispatchedAt));
            const waits = starts.slice(1).map((start, n) => Math.round((start - starts[n]) / 1000));
            return waits.join() === "5,10,20" || "the waits are " + waits.join();
        }
    }
});

kelos.test("a part that fails for good holds the load of its night only", {
    ...NIGHT,
    until: "2026-01-07T00:00Z",
    runs: { "sum-13": (run) => (run.time.getDay() === 5 ? { fails: true } : {}) },
    expect: {
        states: {
            "sum-13@2026-01-05T03:00Z": "failed",
            "sum-14@2026-01-05T03:00Z": "succeeded",
            "load@2026-01-05T03:00Z": { state: "waiting", because: "sum-13@2026-01-05T03:00" },
            "load@2026-01-06T03:00Z": "succeeded"
        }
    }
});

// With `kelos test --real` the commands themselves run, in a temporary folder.
kelos.test("the real commands load a table of twenty sums", {
    ...NIGHT,
    executors: "real",
    expect: {
        slots: { "load": "succeeded" },
        runs: [{ slot: "sum-13@2026-01-05T03:00Z", number: 1, state: "failed" }],
        files: { "data/2026-01-05/table": "expected/table" }
    }
});
