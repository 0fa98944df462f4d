"""Runs one job: imports the module that it names, and calls its main by what that asks for.

main(sc)         is given the context of Spark
main(textFile)   is given what is read from read_fp
main(element)    is given each line of read_fp, and what it returns is written to write_fp

Whatever else main has a parameter for it is given by name: ns, and the identifiers of the job.
"""

import argparse
import importlib
import inspect
import json
import os
import sys

from pyspark import SparkContext


def accepted(main, given):
    """What of the given values a function has parameters for."""
    parameters = inspect.signature(main).parameters.values()
    if any(one.kind == one.VAR_KEYWORD for one in parameters):
        return given
    names = {one.name for one in parameters}
    return {name: value for name, value in given.items() if name in names}


def wanted(ns, name):
    value = getattr(ns, name)
    if value is None:
        sys.exit(f"{ns.module} asks for {name}, which its app does not set")
    return value


def main():
    job = json.loads(sys.argv[1])
    identifiers = job.pop("identifiers")
    ns = argparse.Namespace(**job)
    sys.path.insert(0, os.getcwd())
    function = importlib.import_module(ns.module).main
    given = accepted(function, {"ns": ns, **identifiers})
    names = list(inspect.signature(function).parameters)
    sc = SparkContext.getOrCreate()
    try:
        if "sc" in names:
            function(sc=sc, **given)
            return
        lines = sc.textFile(wanted(ns, "read_fp"), ns.minPartitions)
        if "textFile" in names:
            function(textFile=lines, **given)
        else:
            lines.map(lambda element: function(element, **given)).saveAsTextFile(wanted(ns, "write_fp"))
    finally:
        sc.stop()


main()
