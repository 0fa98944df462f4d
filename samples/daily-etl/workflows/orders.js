// Each night at 3:00: extract the orders of the day in twenty parts, sum up each part, load all sums as one table.
const PARTS = Array.from({ length: 20 }, (_, n) => String(n + 1).padStart(2, "0"));

// All steps have the same times, and the same retries: 5, 10 and 20 seconds after a failure.
function step(id, trigger, shell, more) {
    celos.defineWorkflow({
        id,
        schedule: celos.cronSchedule("0 0 3 * * ?"),
        schedulingStrategy: celos.serialSchedulingStrategy(),
        trigger,
        retry: { count: 3, delaySeconds: 5, backoff: "exponential" },
        // $year and the like are variables of the shell. A relative path begins in the folder of the project.
        externalService: celos.commandExternalService({ shell: "set -eu; folder=data/$year-$month-$day\n" + shell }),
        ...more
    });
}

// The source: a loop here, a query elsewhere.
step("extract", celos.alwaysTrigger(), `
    mkdir -p "$folder"
    for part in ${PARTS.join(" ")}; do printf '%s\\n' 1$part 2$part 3$part > "$folder/$part.orders"; done`);

// One workflow for each part, at most four of them at a time. The connection of part 13 always breaks once.
for (const part of PARTS) {
    step("sum-" + part, celos.successTrigger("extract"), `
        if [ ${part} = 13 ] && [ "$KELOS_RUN" = 1 ]; then echo "the connection was reset" >&2; exit 1; fi
        sum=0
        while read -r amount; do sum=$((sum + amount)); done < "$folder/${part}.orders"
        echo ${part} $sum > "$folder/${part}.sum"`, { pools: [celos.pool("database", 4)] });
}

step("load", celos.andTrigger(...PARTS.map((part) => celos.successTrigger("sum-" + part))), `
    cat "$folder"/*.sum > "$folder/table.new"
    mv "$folder/table.new" "$folder/table"
    echo "loaded $(wc -l < "$folder/table") sums"`);
