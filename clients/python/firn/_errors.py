"""What can go wrong."""

from http.client import responses


class Error(Exception):
    """The base class of this package's errors. A wrong argument or text is a ValueError."""


class ClosedError(Error):
    """A call came after the client was closed."""


class NodeError(Error):
    """A node gave no answer, or one that can't be read. Another node is asked then; events have it."""


class CanceledError(NodeError):
    """A request was given up: another node had answered, or the call had ended. Events have it."""


class RefusedError(Error):
    """A node refuses a call for a reason that neither another node nor another attempt would change."""

    def __init__(self, node: str, status: int, code: str = "", message: str = "", retry_after: float = 0.0) -> None:
        said = "".join(": " + text for text in (code, message) if text) or " " + responses.get(status, "")
        super().__init__(f"{node} answers {status}{said}")
        self.node = node  # its URL
        self.status = status  # of HTTP, such as 404
        self.code = code  # such as "unknown_sequencer"; empty: the answer is not from a firn node
        self.message = message  # for people; may be empty
        self.retry_after = retry_after  # in how many seconds to call the node again; 0: it does not say


class MixedError(Error):
    """Nodes of several clusters answer. They would give the same IDs, so none are taken from those that were met later."""

    def __init__(self, node: str, cluster: str, other: str, other_cluster: str) -> None:
        super().__init__(
            f"{node} is of cluster {cluster}, and {other} was of cluster {other_cluster}; want the nodes of one cluster"
        )
        self.node, self.cluster = node, cluster  # that answered
        self.other, self.other_cluster = other, other_cluster  # that answered last before; IDs are taken from its cluster


class NoAnswerError(Error, TimeoutError):
    """No node gave IDs in time. errors has what is wrong with each, such as a RefusedError."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__("; ".join(["no node gave an ID in time", *map(str, errors)]))
        self.errors = tuple(errors)


def is_final(error: object) -> bool:
    """Tell whether an error is for the caller: another node would hide the caller's mistake, or evade its limit."""
    if not isinstance(error, RefusedError):
        return not isinstance(error, (NodeError, NoAnswerError))  # it is what the function for the token raised
    if error.status == 404:
        return error.code != ""  # without, it is not a firn node
    return error.code == "lifetime" or 400 <= error.status < 500 and error.status != 408
