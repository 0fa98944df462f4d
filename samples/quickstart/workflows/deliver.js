// Simulates the outside world: each hour it delivers a text from each data centre, and then the file
// _READY, which marks the text as complete.
celos.importDefaults("quickstart");

function deliverFrom(dc, trigger, description) {
    celos.defineWorkflow({
        "id": "deliver-" + dc,
        "description": description,
        "tags": ["input", dc],
        "schedule": celos.hourlySchedule(),
        "catchUp": "all",
        "schedulingStrategy": celos.serialSchedulingStrategy(2),
        "trigger": trigger,
        "externalService": celos.commandExternalService({
            "command": ["bin/deliver", dc, "${hour}", input(dc)]
        }),
        // The file that others wait for: by this, `kelos why` and the graph know who delivers it.
        "writes": [input(dc)]
    });
}

deliverFrom("nyc", celos.alwaysTrigger(), "delivers on the hour");
// A slot of lax waits for an hour, so that there is always a waiting slot to inspect.
deliverFrom("lax", celos.delayTrigger(60 * 60), "delivers an hour late, a torn text at 13:00, and nothing at 06:00 of yesterday");
