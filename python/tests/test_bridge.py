"""Plugins that run jobs."""

import contextlib
import io
import json
import os
import sys
import unittest
from unittest import mock

from kelos import bridge

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "plugins"))

JOB = {
    "app": "visits",
    "jobId": "20140601_7",
    "identifiers": {"date": "20140601", "client_id": 7},
    "config": {"job_type": "counting", "job_id": "{date}_{client_id}", "table": "visits_raw"},
}


def run(*argv, job=JOB):
    """The exit status of the bridge, and what it and the plugin printed."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.dict(os.environ, {"KELOS_JOB": json.dumps(job)}):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = bridge.main(list(argv))
    return status, out.getvalue(), err.getvalue()


class Bridge(unittest.TestCase):
    def test_a_plugin_is_given_options_keys_and_identifiers(self):
        status, out, err = run("counting", "visits", "20140601_7")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, "visits 20140601_7: 7 of visits_raw, up to 100\n")

    def test_a_declared_failure_fails_the_job_without_a_traceback(self):
        job = dict(JOB, config={"table": ""})
        status, out, err = run("counting", "visits", "20140601_7", job=job)
        self.assertEqual((status, out, err), (1, "", "counting failed: there is no table\n"))

    def test_what_is_no_plugin_is_told(self):
        status, _, err = run("no.such.module", "visits", "20140601_7")
        self.assertEqual(status, 1)
        self.assertIn("failed to use no.such.module as a plugin: No module named 'no'; expected a module with main(ns)", err)
        self.assertEqual(run("json", "visits", "20140601_7")[0], 1)
        self.assertEqual(run("counting")[0], 2)
