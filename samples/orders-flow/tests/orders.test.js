// Run them with `kelos test`: the clock is virtual, and so are the runs.
const RUN = "@order-42";
const WEEK = {
    from: "2026-01-05T00:00Z",
    until: "2026-01-12T00:00Z",
    actions: [{ at: "2026-01-05T08:00Z", start: "orders", name: "order-42", arguments: { shops: "paris rome" } }]
};
const STEPS = {
    "orders.extract": { gives: { files: ["data/paris.orders", "data/rome.orders"] } },
    "orders.sum": (run) => ({ gives: { file: run.inputs.item, sum: 42 } }),
    "orders.total": { gives: { total: 84 } }
};

kelos.test("what is approved is published", {
    ...WEEK,
    runs: { ...STEPS, "orders.approve": { takes: "5h", gives: { by: "ann" } } },
    expect: {
        states: { [`orders${RUN}`]: "succeeded" },
        runs: [
            { slot: `orders.extract${RUN}`, inputs: { folder: "data", shops: "paris rome" } },
            { slot: `orders.sum:1${RUN}`, inputs: { item: "data/rome.orders", index: 1 } },
            { slot: `orders.total${RUN}`, inputs: { sum: [{ file: "data/paris.orders", sum: 42 }, { file: "data/rome.orders", sum: 42 }] } },
            { slot: `orders.publish${RUN}`, inputs: { folder: "data", total: 84, by: "ann" } }
        ]
    }
});

kelos.test("without an approval nothing is published, and somebody is told", {
    ...WEEK,
    runs: STEPS,
    expect: {
        slots: { "orders.publish": {} },
        states: { [`orders${RUN}`]: "recovered", [`orders.approve${RUN}`]: "expired" },
        runs: [{ slot: `orders.tell${RUN}`, inputs: { failed: "approve" } }]
    }
});

kelos.test("a file is tried three times, and the others are summed up all the same", {
    ...WEEK,
    runs: { ...STEPS, "orders.sum": (run) => (run.item === 0 ? { fails: "no such file" } : { gives: { sum: 42 } }) },
    expect: {
        states: { [`orders${RUN}`]: "recovered", [`orders.sum:1${RUN}`]: "succeeded", [`orders.sum${RUN}`]: { state: "failed", because: "1 of 2 items failed: 0" } },
        runs: [{ slot: `orders.sum:0${RUN}`, number: 3, state: "failed" }]
    }
});

// With `kelos test --real` the commands themselves run, in a temporary folder.
kelos.test("the real commands publish the total of all shops", {
    ...WEEK,
    executors: "real",
    runs: { "orders.approve": { takes: "1h", gives: { by: "ann" } } },
    expect: {
        states: { [`orders${RUN}`]: "succeeded" },
        runs: [{ slot: `orders.total${RUN}`, gives: { total: 84 } }],
        files: { "data/published": "expected/published" }
    }
});
