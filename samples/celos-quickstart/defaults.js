// Where everything is. `celos.importDefaults("wordcount")` brings it in.

// These four lines are all that has to be changed for another cluster.
var USER_NAME = "celos";
var OOZIE = "http://localhost:11000/oozie";
var NAME_NODE = "hdfs://localhost:8020";
var JOB_TRACKER = "localhost:8032";

// What triggers look at, unless they say otherwise.
var CELOS_DEFAULT_HDFS = NAME_NODE;

// What jobs are given to, and with which properties, unless they say otherwise.
var CELOS_DEFAULT_OOZIE = OOZIE;
var CELOS_DEFAULT_OOZIE_PROPERTIES = {
    "user.name": USER_NAME,
    "nameNode": NAME_NODE,
    "jobTracker": JOB_TRACKER
};

// The folder of this sample in HDFS.
var ROOT = "/user/" + USER_NAME + "/quickstart";
