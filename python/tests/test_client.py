"""Where the client looks for its server, and what it makes of an answer that is none."""

import json
import os
import tempfile
import unittest
from unittest import mock

from kelos import api, client, exceptions


class Finding(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        for name in ("KELOS_SERVER", "KELOS_TOKEN", "KELOS_TOKEN_FILE", "KELOS_CA"):
            os.environ.pop(name, None)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_the_folder_has_the_address_and_the_token(self):
        self.write(".kelos/server.json", json.dumps({"address": "http://127.0.0.1:7000", "instance": "i", "token": "of workers"}))
        self.write(".kelos/owner.token", "owner\n")
        below = os.path.join(self.folder.name, "a", "b")
        os.makedirs(below)
        found = client.Server.find(folder=below)
        self.assertEqual((found.address, found.token, found.instance), ("http://127.0.0.1:7000", "owner", "i"))
        os.environ["KELOS_TOKEN"] = "t"
        self.assertEqual(client.Server.find(folder=below).token, "t")

    def test_arguments_go_before_the_environment_and_that_before_the_folder(self):
        self.write(".kelos/server.json", json.dumps({"address": "http://127.0.0.1:7000"}))
        os.environ["KELOS_SERVER"] = "http://two:1/"
        os.environ["KELOS_TOKEN_FILE"] = self.write("token", " secret \n")
        found = client.Server.find(folder=self.folder.name)
        self.assertEqual((found.address, found.token, found.instance), ("http://two:1", "secret", None))
        self.assertEqual(client.Server.find("http://three:2", "x").token, "x")

    def test_what_is_missing_is_said(self):
        with self.assertRaisesRegex(exceptions.ServerError, r"no .kelos/server.json is in .* or above it; start one"):
            client.Server.find(folder=self.folder.name)
        with self.assertRaisesRegex(exceptions.ServerError, "expected an address such as http://127.0.0.1:7437"):
            client.Server("ftp://x").get("/jobs")
        with self.assertRaisesRegex(exceptions.ServerError, "failed to reach http://127.0.0.1:1: "):
            client.Server("http://127.0.0.1:1").get("/jobs")

    def test_calls_before_initialize_are_refused(self):
        with mock.patch.object(api, "_server", None), self.assertRaises(exceptions.Uninitialized):
            api.get_qsize("a")


class Graphs(unittest.TestCase):
    def test_names_can_not_break_out_of_their_quotes(self):
        graph = api.Graph(['a"b', "c"], [('a"b', "c", "default"), ('a"b', "c", "g")])
        self.assertEqual(graph.dot(), 'digraph {\n  "a\\"b";\n  "c";\n  "a\\"b" -> "c";\n  "a\\"b" -> "c" [label="g"];\n}\n')
