"""Runs one job by a plugin of Stolos: `python3 -m kelos.bridge PLUGIN APP JOB_ID`.

PLUGIN is the import path of a module with `main(ns)` and, if it has options, `build_arg_parser`. `ns` has the options with their defaults,
the keys of the app, the identifiers of the job, and `app_name` and `job_id`. The job succeeds if `main` returns, and fails if it raises.
Kelos runs this for apps whose `job_type` is an import path, and describes the job in the variable KELOS_JOB.
"""

import argparse
import importlib
import json
import os
import sys

from kelos.exceptions import CodeError


def options(plugin):
    """The options of a plugin, each with its default or the value of its variable."""
    parser = getattr(plugin, "build_arg_parser", None)
    if parser is None:
        return {}
    if not hasattr(parser, "parse_known_args"):
        parser = parser()
    return vars(parser.parse_known_args([])[0])


def namespace(plugin, app_name, job_id, job):
    """What `main` of a plugin is given."""
    values = options(plugin)
    values.update(job.get("config") or {})
    values.update(job.get("identifiers") or {})
    # Last, because an app has its template under the name job_id.
    values.update(app_name=app_name, job_id=job_id)
    return argparse.Namespace(**values)


def run(path, app_name, job_id, job):
    """Runs a job; returns the exit status."""
    try:
        plugin = importlib.import_module(path)
        main = plugin.main
    except (ImportError, AttributeError) as error:
        print(
            "failed to use {} as a plugin: {}; expected a module with main(ns), in the folder of the apps or on PYTHONPATH".format(
                path, error
            ),
            file=sys.stderr,
        )
        return 1
    try:
        main(namespace(plugin, app_name, job_id, job))
    except CodeError as error:
        print("{} failed: {}".format(path, error), file=sys.stderr)
        return 1
    return 0


def main(argv):
    """The exit status for a command line."""
    if len(argv) != 3:
        print("usage: python3 -m kelos.bridge PLUGIN APP JOB_ID", file=sys.stderr)
        return 2
    return run(*argv, job=json.loads(os.environ.get("KELOS_JOB") or "{}"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
