// Counts the words of each hour, for each data centre: one function, two workflows.
celos.importDefaults("quickstart");

function defineWordCountWorkflow(dc) {
    celos.defineWorkflow({
        "id": "wordcount-" + dc,
        "description": "counts the words of an hour",
        "tags": ["wordcount", dc],
        "schedule": celos.hourlySchedule(),
        "catchUp": "all",
        "schedulingStrategy": celos.serialSchedulingStrategy(4),
        "trigger": isThere(input(dc) + "/_READY"),
        // The text of lax at 13:00 is truncated. The count fails and requests it again; the retry finds it complete.
        "retry": { "count": 4, "delaySeconds": 5, "backoff": "exponential" },
        "externalService": celos.commandExternalService({
            "command": ["bin/wordcount", dc, input(dc), output(dc)]
        }),
        "writes": [output(dc)]
    });
}

DATA_CENTRES.forEach(defineWordCountWorkflow);
