"""Requests to a Kelos server over HTTP, with the standard library alone."""

import hashlib
import http.client
import json
import os
import ssl
import urllib.parse

from kelos.exceptions import DAGMisconfigured, InvalidJobId, NoNodeError, ServerError

#: The seconds that a server has for each answer.
PATIENCE = 60
#: The relatives of a job that are read with one request; the server gives no more.
PAGE = 10000

_MEANINGS = {
    "workflow-not-found": DAGMisconfigured,
    "not-keyed": DAGMisconfigured,
    "no-job-id": InvalidJobId,
    "slot-not-found": NoNodeError,
}


class Server:
    """The address of a server, and what a client shows to it and expects of it."""

    def __init__(self, address, token=None, instance=None, pin=None, ca=None):
        self.address = address.rstrip("/")
        self.token = token
        self.instance = instance
        self.pin = pin
        self.ca = ca

    @classmethod
    def find(cls, address=None, token=None, folder=None):
        """Finds the server that was named, that of KELOS_SERVER, or that of a folder or one above it."""
        named = address or os.environ.get("KELOS_SERVER")
        token = token or _token_of_environment()
        ca = os.environ.get("KELOS_CA") or None
        if named:
            return cls(named, token, ca=ca)
        state = _state_of(folder or os.getcwd())
        if state is None:
            raise ServerError(
                "failed to find a server: no .kelos/server.json is in {} or above it; start one with `kelos up`, or name "
                "one with initialize(server=...) or KELOS_SERVER".format(folder or os.getcwd())
            )
        with open(os.path.join(state, "server.json"), encoding="utf-8") as file:
            record = json.load(file)
        token = token or _text_of(os.path.join(state, "owner.token"))
        return cls(record["address"], token, record.get("instance"), record.get("pin"), ca)

    def get(self, path, **query):
        """Reads something; values of None are left out of the query."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", path + ("?" + urllib.parse.urlencode(given) if given else ""))

    def post(self, path, body):
        """Requests something."""
        return self._ask("POST", path, json.dumps(body).encode("utf-8"))

    def _ask(self, method, path, body=None):
        connection = self._connection()
        try:
            connection.connect()
            self._check_pin(connection)
            base = urllib.parse.urlsplit(self.address).path
            connection.request(method, base + "/api/v1" + path, body, self._headers(body))
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise ServerError("failed to reach {}: {}".format(self.address, error)) from error
        finally:
            connection.close()
        if 200 <= answer.status < 300:
            return json.loads(text)
        raise _refusal(answer.status, text)

    def _headers(self, body):
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if self.instance:
            headers["Kelos-Instance"] = self.instance
        return headers

    def _connection(self):
        url = urllib.parse.urlsplit(self.address)
        if url.scheme == "http" and url.hostname:
            return http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE)
        if url.scheme != "https" or not url.hostname:
            raise ServerError(
                "failed to use {!r} as a server: expected an address such as http://127.0.0.1:7437".format(self.address)
            )
        context = ssl.create_default_context(cafile=self.ca)
        if self.pin:
            # The certificate itself is compared instead.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(url.hostname, url.port, timeout=PATIENCE, context=context)

    def _check_pin(self, connection):
        if not self.pin or not isinstance(connection.sock, ssl.SSLSocket):
            return
        found = "sha256:" + hashlib.sha256(connection.sock.getpeercert(True)).hexdigest()
        if found != self.pin:
            raise ServerError("failed to trust {}: its certificate is {}, expected {}".format(self.address, found, self.pin))


def escape(text):
    """A text as one part of a path."""
    return urllib.parse.quote(str(text), safe="")


def job_path(app_name, job_id):
    """The path of a job as a slot."""
    # The tilde says that what follows is a job id, whatever it looks like.
    return "/workflows/{}/slots/~{}".format(escape(app_name), escape(job_id))


def _refusal(status, text):
    try:
        problem = json.loads(text)
    except ValueError:
        problem = {}
    detail = problem.get("detail") or "the server answered {}".format(status)
    hint = problem.get("hint")
    message = "{} ({})".format(detail, hint) if hint else detail
    code = problem.get("code")
    kind = _MEANINGS.get(code)
    return kind(message) if kind else ServerError(message, code)


def _token_of_environment():
    file = os.environ.get("KELOS_TOKEN_FILE")
    if file:
        with open(file, encoding="utf-8") as token:
            return token.read().strip()
    return (os.environ.get("KELOS_TOKEN") or "").strip() or None


def _state_of(folder):
    folder = os.path.abspath(folder)
    while True:
        state = os.path.join(folder, ".kelos")
        if os.path.exists(os.path.join(state, "server.json")):
            return state
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _text_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip() or None
    except OSError:
        return None
