"""The exceptions of the calls, under the names that they have in Stolos."""


class StolosException(Exception):
    """Any error of these calls."""


class Uninitialized(StolosException):
    """A call came before `initialize`."""


class NoNodeError(StolosException):
    """There is no such job."""


class CodeError(StolosException):
    """A plugin declares that its job failed."""


class JobAlreadyQueued(StolosException):
    """A job that has not ended was to be submitted again."""


class DAGMisconfigured(StolosException):
    """There is no such app or dependency group."""


class InvalidJobId(StolosException):
    """An app can't have a job with this id."""


class ServerError(StolosException):
    """The server can't be reached, or refused a request for another reason.

    `code` is the stable code of the problem, where the server gave one.
    """

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code
