// The orders of some shops: a file for each, summed up two at a time, and published once somebody has agreed to the total.
const sh = String.raw;
// An argument of the run stands in for an input of this name: kelos start orders --argument folder=/srv/orders
const place = { folder: "data" };

kelos.flow("orders", {
    concurrency: 5,
    steps: {
        extract: {
            inputs: { ...place, shops: "paris lyon nice" },
            // The source: a loop here, a query elsewhere.
            shell: sh`set -eu; mkdir -p "$folder"; files=; comma=
                for shop in $shops; do
                    printf '%s\n' 10 20 12 > "$folder/$shop.orders"
                    files="$files$comma\"$folder/$shop.orders\""; comma=,
                done
                printf '{"files": [%s]}' "$files" > "$KELOS_OUTPUTS"`
        },
        sum: {
            needs: "extract", forEach: "files", concurrency: 2, retry: { count: 2, delaySeconds: 5 }, onError: "tell",
            shell: sh`set -eu; all=0
                while read -r amount; do all=$((all + amount)); done < "$item"
                printf '{"file": "%s", "sum": %s}' "$item" "$all" > "$KELOS_OUTPUTS"`
        },
        total: {
            // What the items gave is a list under the name of their step.
            needs: "sum",
            shell: sh`printf '%s' "$sum" | grep -o '"sum":[0-9]*' |
                awk -F: '{ all += $2 } END { printf "{\"total\": %d}", all }' > "$KELOS_OUTPUTS"`
        },
        approve: { needs: "total", signal: "approval", within: "2d", onError: "tell" },
        publish: { needs: ["total", "approve"], inputs: place, shell: 'echo "$total, approved by $by" > "$folder/published"' },
        tell: { inputs: place, shell: 'mkdir -p "$folder"; echo "$failed: $error" > "$folder/failed"' }
    }
});
