// @ts-check
// A first workflow. `kelos up` runs it, and takes over each change within a second. `kelos check` finds mistakes,
// `kelos test` runs tests/hello.test.js, and kelos.d.ts describes everything that a script can say.

celos.defineWorkflow({
    // The name, unique among all scripts.
    id: "hello",
    description: "says hello, each hour",

    // The times of its slots: every hour. Or celos.cronSchedule("0 30 6 * * ?"): every day at 6:30, in UTC.
    schedule: celos.hourlySchedule(),

    // No slot before this time. Those since then run at once, so that there is something to see. With "skip", the first would be
    // that of the next hour; with "latest", too, but after an outage the latest hour of it runs.
    startTime: "2000-01-01T00:00Z",
    catchUp: "all",

    // How many of its slots may run at the same time.
    schedulingStrategy: celos.serialSchedulingStrategy(2),

    // When a slot may start: always. Or once a file is there, celos.fileCheckTrigger("in/${year}-${month}-${day}-${hour}.csv");
    // once another workflow has succeeded, celos.successTrigger("its-name"); or both, with celos.andTrigger.
    trigger: celos.alwaysTrigger(),

    // After a failure it is tried again: after 10, 20 and 40 seconds.
    retry: { count: 3, delaySeconds: 10, backoff: "exponential" },

    // The job: a shell script, which starts in the folder of the project. $year to $second are its variables.
    externalService: celos.commandExternalService({
        shell: 'echo "hello from $hour:00 of $year-$month-$day"'
    })
});
