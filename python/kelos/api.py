"""The calls of Stolos, answered by a Kelos server."""

import os
import shutil
import subprocess
import tempfile
import webbrowser

from kelos.client import PAGE, Server, escape, job_path
from kelos.exceptions import DAGMisconfigured, JobAlreadyQueued, NoNodeError, StolosException, Uninitialized

#: The states of Stolos, by the states of Kelos.
STATES = {
    "waiting": "pending",
    "held": "pending",
    "queued": "pending",
    "dispatched": "pending",
    "running": "pending",
    "backoff": "pending",
    "succeeded": "completed",
    "failed": "failed",
    "killed": "failed",
    "expired": "failed",
    "skipped": "skipped",
}
#: The states in which a job has ended.
ENDED = ("completed", "failed", "skipped")

_server = None


def initialize(args=None, server=None, token=None, folder=None):
    """Finds the server; it has to be called before everything else, and may be called again.

    The server is the one with this address, else that of KELOS_SERVER, else that of this folder or of the current one. The token is this
    one, else that of KELOS_TOKEN_FILE or KELOS_TOKEN, else that of the folder. `args`, the options of Stolos, have no effect.
    """
    global _server
    _server = Server.find(server, token, folder)


def _asked():
    if _server is None:
        raise Uninitialized("call initialize() first")
    return _server


def check_state(
    app_name, job_id, raise_if_not_exists=False, pending=False, completed=False, failed=False, skipped=False, all=False
):
    """Tells whether a job is in one of the named states; a list of job ids gives a list of answers."""
    flags = (("pending", pending), ("completed", completed), ("failed", failed), ("skipped", skipped))
    wanted = set(STATES.values()) if all else {name for name, is_wanted in flags if is_wanted}
    if not wanted:
        raise UserWarning("name a state to check for: pending, completed, failed, skipped or all")
    if isinstance(job_id, (list, tuple, set, frozenset)):
        return [_is_in(app_name, one, wanted, raise_if_not_exists) for one in job_id]
    return _is_in(app_name, job_id, wanted, raise_if_not_exists)


def _is_in(app_name, job_id, wanted, raise_if_not_exists):
    try:
        return get_state(app_name, job_id) in wanted
    except NoNodeError:
        if raise_if_not_exists:
            raise
        return False


def get_state(app_name, job_id):
    """The state of a job in the words of Stolos; NoNodeError if it was never submitted."""
    state = _asked().get(job_path(app_name, job_id))["state"]
    return STATES.get(state, state)


def maybe_add_subtask(app_name, job_id, queue=True, priority=None):
    """Submits a job, with its missing ancestors, unless it exists. Returns whether it did not exist."""
    if not queue:
        raise StolosException(
            "failed to add {}@{} without queueing it: a job that exists runs once its parents have succeeded; "
            "submit it when it may run, or pause its app".format(app_name, job_id)
        )
    return _submit(app_name, job_id, priority=priority or None)["result"] == "opened"


def readd_subtask(app_name, job_id):
    """Submits a job again, with everything downstream that has ended; JobAlreadyQueued if it has not ended."""
    answer = _submit(app_name, job_id, readd=True)
    if answer["result"] == "existed":
        raise JobAlreadyQueued("{}@{} is {}".format(app_name, job_id, answer.get("state")))
    return True


def _submit(app_name, job_id, readd=False, priority=None):
    body = {"jobs": [{"workflow": str(app_name), "job": str(job_id)}], "readd": readd}
    if priority is not None:
        body["priority"] = priority
    return _asked().post("/jobs", body)["items"][0]


def get_qsize(app_name, queued=True, taken=True):
    """The number of jobs that could start now (queued), that run (taken), or both."""
    if not queued and not taken:
        raise AttributeError("name what to count: queued, taken or both")
    found = _asked().get("/workflows/{}/queue".format(escape(app_name)))
    return (found["queued"] if queued else 0) + (found["running"] if taken else 0)


def get_parents(app_name, job_id, include_dependency_group=False, filter_deps=()):
    """Iterates over the jobs that a job waits for, as (app, job id), or (app, job id, group)."""
    found = list(_groups(app_name, job_id))
    if filter_deps:
        names = {group for group, _ in found}
        missing = [group for group in filter_deps if group not in names]
        if missing:
            _check_groups(app_name, missing)
    for group, jobs in found:
        if filter_deps and group not in filter_deps:
            continue
        for app, job in jobs:
            yield (app, job, group) if include_dependency_group else (app, job)


def _groups(app_name, job_id):
    """The groups of a job's parents, each with its jobs."""
    path = "/jobs/{}/~{}/parents".format(escape(app_name), escape(job_id))
    groups, offset = {}, 0
    while True:
        answer = _asked().get(path, offset=offset, limit=PAGE)
        for group in answer["anyOf"]:
            jobs = groups.setdefault(group["group"], [])
            jobs.extend((job["workflow"], job["job"]) for job in group["jobs"])
        offset += PAGE
        if _all_read(answer["anyOf"], offset):
            return groups.items()


def _all_read(groups, offset):
    """Whether no group has more jobs than were read."""
    return not any(group["total"] > offset for group in groups)


def _check_groups(app_name, names):
    known = set()
    for edge in _asked().get("/graph")["edges"]:
        if edge["to"] == app_name:
            known.update(edge.get("groups", ()))
    unknown = [name for name in names if name not in known]
    # An app that depends on nothing has no parents, whichever group is asked for.
    if known and unknown:
        expected = ", ".join(sorted(known))
        raise DAGMisconfigured("{} has no dependency group {}, expected one of {}".format(app_name, unknown[0], expected))


def get_children(app_name, job_id, include_dependency_group=True):
    """Iterates over the jobs that wait for a job, as (app, job id, group), or (app, job id)."""
    path = "/jobs/{}/~{}/children".format(escape(app_name), escape(job_id))
    offset = 0
    while True:
        answer = _asked().get(path, offset=offset, limit=PAGE)
        for child in answer["children"]:
            job = (child["workflow"], child["job"])
            yield job + (child["group"],) if include_dependency_group else job
        offset += PAGE
        if answer["total"] <= offset:
            return


class Graph:
    """The dependencies between apps."""

    def __init__(self, nodes, edges):
        self._nodes, self._edges = nodes, edges

    def nodes(self):
        """The names of the apps."""
        return list(self._nodes)

    def edges(self):
        """The dependencies, as (parent, child, group)."""
        return list(self._edges)

    def dot(self):
        """The text that Graphviz draws."""
        quoted = lambda text: '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))  # noqa: E731
        lines = ["digraph {"] + ["  {};".format(quoted(node)) for node in self._nodes]
        for parent, child, group in self._edges:
            label = "" if group == "default" else " [label={}]".format(quoted(group))
            lines.append("  {} -> {}{};".format(quoted(parent), quoted(child), label))
        return "\n".join(lines + ["}", ""])


def build_dag(validate=False):
    """Reads the dependencies between apps. The server has validated them."""
    answer = _asked().get("/graph")
    edges = [
        (edge["from"], edge["to"], group)
        for edge in answer["edges"]
        if edge["kind"] == "jobs"
        for group in edge.get("groups") or ["default"]
    ]
    return Graph([node["id"] for node in answer["nodes"]], edges)


def visualize_dag(dg=None, plot_nx=False, plot_graphviz=True, write_dot=True, prog="dot"):
    """Writes the dependencies between apps for Graphviz, draws them if it is installed, and shows the picture in a browser.

    Returns the path of the picture, or of the text without Graphviz.
    """
    dot = (dg or build_dag()).dot()
    folder = tempfile.mkdtemp(prefix="kelos-dag-")
    text = os.path.join(folder, "dag.dot")
    if write_dot or plot_graphviz or plot_nx:
        with open(text, "w", encoding="utf-8") as file:
            file.write(dot)
    if not (plot_graphviz or plot_nx) or shutil.which(prog) is None:
        return text
    picture = os.path.join(folder, "dag.png")
    subprocess.run([prog, "-Tpng", "-o", picture, text], check=True)
    webbrowser.open("file://" + picture)
    return picture
