// Run them with `kelos test`: the clock is virtual, and so are the runs.
const WEEK = { from: "2026-11-23T00:00Z", until: "2026-11-30T00:00Z" };
const start = (given) => [{ at: "2026-11-23T08:00Z", start: "sales", name: "monday", arguments: given }];

kelos.test("parameters and outputs reach the steps, and what is approved is published", {
    ...WEEK,
    actions: start({ currency: "USD", rate: 1.1 }),
    runs: {
        "sales.extract": { gives: { shops: ["Lyon", "Nice"] } },
        "sales.total": (run) => ({ gives: { shop: run.inputs.item, euros: 40 } }),
        "sales.report": { gives: { text: "88.00 USD" } },
        "sales.approve": { takes: "5h", gives: { by: "ann" } }
    },
    expect: {
        states: { "sales@monday": "succeeded" },
        runs: [
            { slot: "sales.extract@monday", inputs: { day: "2026-11-21", currency: "USD", rate: 1.1 } },
            { slot: "sales.report@monday", inputs: { total: [{ shop: "Lyon", euros: 40 }, { shop: "Nice", euros: 40 }] } },
            { slot: "sales.publish@monday", inputs: { text: "88.00 USD", by: "ann" } }
        ]
    }
});

kelos.test("a day without shops is excused", {
    ...WEEK,
    actions: start({ day: "2026-11-22" }),
    runs: { "sales.extract": { gives: { shops: [] } }, "sales.report": { fails: "no shop was open" } },
    expect: {
        states: { "sales@monday": "recovered" },
        runs: [{ slot: "sales.excuse@monday", inputs: { failed: "report" } }]
    }
});

// With `kelos test --real` the functions themselves run, in a temporary folder.
kelos.test("the real functions publish a report", {
    ...WEEK,
    actions: start({ currency: "USD", rate: 1.1 }),
    executors: "real",
    copy: ["steps.py"],
    runs: { "sales.approve": { takes: "1h", gives: { by: "ann" } } },
    expect: { states: { "sales@monday": "succeeded" }, files: { "report.txt": "expected/report.txt" } }
});
