// Each hour: ingest the clicks of that hour. For each day: a report, once all of its hours are ingested. A report needs each of its
// hours, so that those of an outage, and those of the week before all this was written, run as well: catchUp: "all".

kelos.workflow("ingest", {
    description: "fetches the clicks of an hour",
    schedule: "hourly",
    catchUp: "all",
    // Eight hours at a time when there is much to do, as in a backfill.
    concurrency: 8,
    // The slot of 09:00 is the hour from 09:00 to 10:00. The source is complete five minutes after its end.
    trigger: celos.delayTrigger(65 * 60),
    retry: { count: 5, delaySeconds: 10, backoff: "exponential", maxDelaySeconds: 300, jitterPercent: 20 },
    timeoutSeconds: 600,
    // The source is made up; elsewhere there is a curl. The file appears as a whole, so that an hour can run again.
    shell: `
        set -eu
        mkdir -p data/$year-$month-$day
        echo "$hour:00 $((1$hour * 7)) clicks" > data/$year-$month-$day/$hour.new
        mv data/$year-$month-$day/$hour.new data/$year-$month-$day/$hour`
});

kelos.workflow("report", {
    description: "adds up the clicks of a day",
    schedule: "daily",
    catchUp: "all",
    // Its slot of midnight waits for the 24 slots of `ingest` from then on.
    trigger: celos.andTrigger(...Array.from({ length: 24 }, (_, hour) =>
        celos.offsetTrigger(hour * 3600, celos.successTrigger("ingest")))),
    shell: `
        total=0
        for file in data/$year-$month-$day/??; do read -r at clicks unit < $file; total=$((total + clicks)); done
        echo "$total clicks" > data/$year-$month-$day.report`
});
