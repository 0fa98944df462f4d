// Each night at 3:00: extract the orders of the day in twenty parts, sum up each part, load all sums as one table.
const PARTS = Array.from({ length: 20 }, (_, n) => String(n + 1).padStart(2, "0"));

// All steps have the same times, also those of the week before they were written, and the same retries: 5, 10 and 20 seconds after a failure.
const step = (name, shell, more) => kelos.workflow(name, {
    schedule: "0 3 * * *",
    catchUp: "all",
    retry: { count: 3, delaySeconds: 5, backoff: "exponential" },
    // $year and the like are variables of the shell. A relative path begins in the folder of the project.
    shell: "set -eu; folder=data/$year-$month-$day\n" + shell,
    ...more
});

// The source: a loop here, a query elsewhere.
const extract = step("extract", `
    mkdir -p "$folder"
    for part in ${PARTS.join(" ")}; do printf '%s\\n' 1$part 2$part 3$part > "$folder/$part.orders"; done`);

// One workflow for each part, at most four of them at a time. The connection of part 13 always breaks once.
const sums = PARTS.map((part) => step("sum-" + part, `
    if [ ${part} = 13 ] && [ "$KELOS_RUN" = 1 ]; then echo "the connection was reset" >&2; exit 1; fi
    sum=0
    while read -r amount; do sum=$((sum + amount)); done < "$folder/${part}.orders"
    echo ${part} $sum > "$folder/${part}.sum"`, { after: extract, pools: [celos.pool("database", 4)] }));

step("load", `
    cat "$folder"/*.sum > "$folder/table.new"
    mv "$folder/table.new" "$folder/table"
    echo "loaded $(wc -l < "$folder/table") sums"`, { after: sums });
