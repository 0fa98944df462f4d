// Counts the words of each hour's text from each of two data centres.
celos.importDefaults("wordcount");

function define(dc) {
    var hour = dc + "/${year}-${month}-${day}/${hour}00";
    celos.defineWorkflow({
        "id": "wordcount-" + dc,
        "schedule": celos.hourlySchedule(),
        "schedulingStrategy": celos.serialSchedulingStrategy(),
        // Oozie gives up a job that loses its name node at the wrong moment; it is retried.
        "maxRetryCount": 3,
        // The producer of an hour writes this empty file last.
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
