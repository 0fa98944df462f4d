// Adds up both data centres, once both counts of an hour have succeeded.
celos.importDefaults("quickstart");

celos.defineWorkflow({
    "id": "totals",
    "description": "adds up the word counts of an hour",
    "tags": ["wordcount"],
    // The same schedule as wordcount-nyc.
    "schedule": celos.dependentSchedule("wordcount-nyc"),
    "catchUp": "all",
    "schedulingStrategy": celos.serialSchedulingStrategy(4),
    "trigger": celos.andTrigger(
        celos.successTrigger("wordcount-nyc"),
        celos.successTrigger("wordcount-lax")
    ),
    "externalService": celos.commandExternalService({
        "command": ["bin/totals", output("total"), output("nyc"), output("lax")]
    })
});
