"""Configuration backends that are printed."""

import contextlib
import io
import json
import os
import sys
import unittest

from kelos import config

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "plugins"))


def run(*argv):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = config.main(list(argv))
    return status, out.getvalue(), err.getvalue()


class Config(unittest.TestCase):
    def test_a_backend_is_printed_as_json(self):
        status, out, err = run("backend.Apps")
        self.assertEqual((status, err), (0, ""))
        expected = {"job_id": "{date}", "bash_cmd": "true", "autofill_values": {"date": [20140601, 20140602]}}
        self.assertEqual(json.loads(out), {"fetch": expected})

    def test_what_is_no_backend_is_told(self):
        status, out, err = run("backend.Nothing")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("failed to use backend.Nothing as a configuration backend", err)
        self.assertEqual(run("backend")[0], 2)
