"""The calls against a real server of `samples/jobs`, which KELOS_SERVER names. Without one they are skipped."""

import os
import time
import unittest
from unittest import mock

from kelos import api
from kelos.exceptions import DAGMisconfigured, InvalidJobId, JobAlreadyQueued, NoNodeError, StolosException

DAY = "20140601"


def until(holds):
    deadline = time.monotonic() + 120
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.05)


@unittest.skipUnless(os.environ.get("KELOS_SERVER"), "needs a server of samples/jobs: KELOS_SERVER=http://127.0.0.1:PORT")
class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        api.initialize()

    def test_a_job_is_added_once_and_followed_to_its_end(self):
        self.assertFalse(api.check_state("preprocess", "20140701_1", all=True))
        self.assertTrue(api.maybe_add_subtask("preprocess", "20140701_1", priority=5))
        self.assertFalse(api.maybe_add_subtask("preprocess", "20140701_1"))
        self.assertTrue(api.check_state("preprocess", "20140701_1", all=True))
        until(lambda: api.check_state("preprocess", "20140701_1", completed=True))
        self.assertEqual(api.get_state("preprocess", "20140701_1"), "completed")
        answers = api.check_state("preprocess", ["20140701_1", "20140701_2"], completed=True, failed=True)
        self.assertEqual(answers, [True, False])
        self.assertFalse(api.check_state("preprocess", "20140701_1", pending=True, failed=True, skipped=True))
        self.assertTrue(api.readd_subtask("preprocess", "20140701_1"))
        until(lambda: api.check_state("preprocess", "20140701_1", completed=True))
        self.assertFalse(api.maybe_add_subtask("preprocess", "20140701_1"))

    def test_a_job_that_has_not_ended_is_not_added_again(self):
        self.assertTrue(api.readd_subtask("report", "20140801"))
        with self.assertRaisesRegex(JobAlreadyQueued, "report@20140801 is waiting"):
            api.readd_subtask("report", "20140801")
        self.assertTrue(api.check_state("report", "20140801", pending=True))

    def test_what_is_missing_or_wrong_is_raised(self):
        with self.assertRaises(NoNodeError):
            api.check_state("report", "19990101", raise_if_not_exists=True, completed=True)
        with self.assertRaises(UserWarning):
            api.check_state("report", "19990101")
        with self.assertRaisesRegex(InvalidJobId, "date"):
            api.maybe_add_subtask("report", "20149999")
        with self.assertRaises(InvalidJobId):
            api.check_state("report", "a b", completed=True)
        with self.assertRaisesRegex(DAGMisconfigured, "rapport"):
            api.maybe_add_subtask("rapport", DAY)
        with self.assertRaisesRegex(StolosException, "pause its app"):
            api.maybe_add_subtask("report", DAY, queue=False)
        with self.assertRaises(AttributeError):
            api.get_qsize("report", queued=False, taken=False)

    def test_parents_and_children_are_those_of_the_file(self):
        targets = ("purchaseRevenue", "numberOfPageviews")
        parents = {("modelBuild", "{}_{}_{}".format(DAY, client, target)) for client in (1, 2, 3) for target in targets}
        self.assertEqual(set(api.get_parents("report", DAY)), parents)
        with_group = list(api.get_parents("report", DAY, True, ["default"]))
        self.assertEqual(set(with_group), {job + ("default",) for job in parents})
        with self.assertRaisesRegex(DAGMisconfigured, "report has no dependency group nix, expected one of default"):
            list(api.get_parents("report", DAY, filter_deps=["nix"]))
        self.assertEqual(list(api.get_parents("preprocess", DAY + "_1", filter_deps=["nix"])), [])
        children = [("modelBuild", "{}_1_{}".format(DAY, target), "default") for target in targets]
        self.assertEqual(sorted(api.get_children("preprocess", DAY + "_1")), sorted(children))
        self.assertEqual(list(api.get_children("preprocess", DAY + "_9", False)), [])
        with mock.patch.object(api, "PAGE", 1):
            self.assertEqual(set(api.get_parents("report", DAY)), parents)
            self.assertEqual(len(list(api.get_children("preprocess", DAY + "_1"))), 2)

    def test_the_queue_is_counted(self):
        api.maybe_add_subtask("preprocess", "20140901_1")
        until(lambda: api.check_state("preprocess", "20140901_1", completed=True))
        self.assertEqual(api.get_qsize("preprocess", taken=False), 0)

    def test_the_graph_is_drawn(self):
        graph = api.build_dag()
        self.assertEqual(sorted(graph.nodes()), ["modelBuild", "preprocess", "report"])
        edges = [("modelBuild", "report", "default"), ("preprocess", "modelBuild", "default")]
        self.assertEqual(sorted(graph.edges()), edges)
        path = api.visualize_dag(graph, plot_graphviz=False)
        with open(path, encoding="utf-8") as file:
            self.assertIn('"preprocess" -> "modelBuild";', file.read())
