// The addresses of all services. `celos.importDefaults("wordcount")` imports them.

// For another cluster, change these four lines.
var USER_NAME = "celos";
var OOZIE = "http://localhost:11000/oozie";
var NAME_NODE = "hdfs://localhost:8020";
var JOB_TRACKER = "localhost:8032";

// The default file system of triggers.
var CELOS_DEFAULT_HDFS = NAME_NODE;

// The default Oozie server of jobs, and the default properties.
var CELOS_DEFAULT_OOZIE = OOZIE;
var CELOS_DEFAULT_OOZIE_PROPERTIES = {
    "user.name": USER_NAME,
    "nameNode": NAME_NODE,
    "jobTracker": JOB_TRACKER
};

// The folder of this sample in HDFS.
var ROOT = "/user/" + USER_NAME + "/quickstart";
