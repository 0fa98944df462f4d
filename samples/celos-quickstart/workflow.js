// Counts words, hour by hour, in what each of two data centres delivers.
celos.importDefaults("wordcount");

function define(dc) {
    var hour = dc + "/${year}-${month}-${day}/${hour}00";
    celos.defineWorkflow({
        "id": "wordcount-" + dc,
        "schedule": celos.hourlySchedule(),
        "schedulingStrategy": celos.serialSchedulingStrategy(),
        // Oozie gives a job up that loses its name node at the wrong moment; then it is done again.
        "maxRetryCount": 3,
        // Whoever delivers an hour writes this empty file last.
        "trigger": celos.hdfsCheckTrigger(ROOT + "/input/" + hour + "/_READY"),
        "externalService": celos.oozieExternalService({
            "oozie.wf.application.path": NAME_NODE + ROOT + "/wordcount/workflow.xml",
            "inputPath": NAME_NODE + ROOT + "/input/" + hour,
            "outputPath": NAME_NODE + ROOT + "/output/" + hour
        })
    });
}

define("lax");
define("nyc");
