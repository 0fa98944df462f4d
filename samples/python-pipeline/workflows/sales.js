// A Python pipeline: parameters go in, what a step returns is given to the next, and a person approves.
const python = (name, more) => ({ command: ["python3", "steps.py", name], retry: { count: 2, delaySeconds: 2 }, ...more });

kelos.flow("sales", {
    parameters: {
        day: { type: "date", default: "2026-11-21", about: "the day of the report" },
        currency: { type: "choice", choices: ["EUR", "USD"], default: "EUR" },
        rate: { type: "number", default: 1.0, about: "units of the currency for one euro" }
    },
    steps: {
        extract: python("extract"),
        total: python("total", { needs: "extract", forEach: "shops", concurrency: 2 }),
        report: python("report", { needs: "total", onError: "excuse" }),
        approve: { needs: "report", signal: "approval", within: "2d", onError: "excuse" },
        publish: python("publish", { needs: ["report", "approve"] }),
        excuse: python("excuse")
    }
});
