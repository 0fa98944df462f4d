// Shared by all workflows here. `celos.importDefaults("quickstart")` imports it.

// The sources of text. Each data centre has its own folder below data/input and data/output.
var DATA_CENTRES = ["nyc", "lax"];

// The folder of an hour. `${...}` is filled in for each slot.
var HOUR = "${year}-${month}-${day}/${hour}00";

// Paths are relative to the folder that `kelos up` was given: commands start there, too.
function input(dc) {
    return "data/input/" + dc + "/" + HOUR;
}

function output(dc) {
    return "data/output/" + dc + "/" + HOUR;
}

// Met once a file exists at the path.
function isThere(path) {
    return celos.fileCheckTrigger("file:" + path);
}
