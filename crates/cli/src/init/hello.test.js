// @ts-check
// Tests of workflows/hello.js. `kelos test` runs them on a virtual clock: no command is started, and a day takes no time.

kelos.test("each hour of a day says hello", {
    from: "2000-01-01T00:00Z",
    until: "2000-01-02T00:00Z",
    expect: {
        slots: { "hello": { succeeded: 24 } }
    }
});

kelos.test("an hour that fails is tried again", {
    from: "2000-01-01T09:00Z",
    until: "2000-01-01T10:00Z",
    // Its first run fails, the next one succeeds.
    runs: { "hello": { fails: 1, reason: "the line was busy" } },
    expect: {
        states: { "hello@2000-01-01T09:00Z": "succeeded" },
        runs: [{ slot: "hello@2000-01-01T09:00Z", number: 2, state: "succeeded" }]
    }
});
