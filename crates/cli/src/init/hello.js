// @ts-check
// A first workflow. `kelos up` runs it, and takes over each change within a second. `kelos check` finds mistakes,
// `kelos test` runs tests/hello.test.js, and kelos.d.ts describes everything that a script can say.

// The name is unique among all scripts.
kelos.workflow("hello", {
    description: "says hello, each hour",

    // The times of its slots. Or a cron expression, such as "30 6 * * 1-5": at 6:30 from Monday to Friday, in UTC, or in a timeZone.
    schedule: "hourly",

    // Which past times run. Here all since yesterday, so that there is something to see. Without these two lines it would begin with
    // the next hour, and after an outage the latest hour of it would run; with "skip" none.
    startTime: "2000-01-01T00:00Z",
    catchUp: "all",

    // How many of its slots may run at the same time; one, if nothing is said.
    concurrency: 2,

    // A slot starts at once. Or when a file is there, trigger: celos.fileCheckTrigger("in/${year}-${month}-${day}-${hour}.csv");
    // or when other workflows have succeeded for the same hour, after: ["its-name"].

    // After a failure it is tried again: after 10, 20 and 40 seconds.
    retry: { count: 3, delaySeconds: 10, backoff: "exponential" },

    // The job: a shell script, which starts in the folder of the project. $year to $second are its variables.
    shell: 'echo "hello from $hour:00 of $year-$month-$day"'
});
