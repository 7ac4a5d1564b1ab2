"""All exceptions, as one tree; the command line maps its branches to exit codes.

    AstraError
    ├── UsageError             wrong options, configuration or data                 exit 2
    │   ├── ConfigError            an option or a TOML setting
    │   ├── ProblemsError          the problems CSV (names line and column)
    │   └── ConflictError          the run directory disagrees: settings, lines, owner
    ├── ProjectError           a problem's files, manifest or tests; its samples are missing
    │   ├── SourceError            project files cannot be fetched
    │   ├── ArchiveError           an archive is broken, malicious or too large
    │   └── ExpectationError       no tests were found, or not those that the CSV names
    ├── ProviderError          a request got no usable response; the sample is missing
    │   ├── RateLimited            429 and similar: wait, then retry
    │   ├── Overloaded             the provider is short of capacity (503, 529)
    │   ├── TransientError         connection error, timeout, 5xx
    │   │   └── TruncatedStream        the stream ended without its terminal marker
    │   ├── RequestRejected        this request can never succeed
    │   └── PoolUnusable           key, quota or spend: no request of this pool can succeed
    │       └── BudgetExhausted        the user's own limit (`--budget-usd`)
    ├── SandboxError           Docker trouble; the sample is missing
    │   ├── EngineUnavailable      no engine responds                               exit 3
    │   ├── ImageError             an image is missing, unbuildable or unsuitable
    │   ├── ContainerLost          the container vanished or the engine restarted
    │   └── NodesLost              several nodes of a cluster were lost during one job
    ├── StorageError           a log cannot be written (disk full, read-only)       exit 3
    └── InvariantError         planned and recorded samples disagree at the end     exit 3

A model's own failures (a refusal, an unreadable answer, failing tests) are results, never exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.redaction import mask

if TYPE_CHECKING:
    from typing import Self

    from astra_async.usage import Usage


class AstraError(Exception):
    """Base class; the message is one line: what failed, where, and the remedy.

    Secrets are masked in every message when the exception is created.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(mask(message))


class UsageError(AstraError):
    """The command, the configuration or the data is wrong; nothing was changed."""


class IncompleteRun(UsageError):  # noqa: N818 - a state of the run
    """Headline figures were requested, but planned samples have no result."""


class ConfigError(UsageError):
    """An option or a TOML setting is unknown, malformed or contradicts another."""


class ProblemsError(UsageError):
    """The problems CSV is unusable; the message has line and column."""


class ConflictError(UsageError):
    """The run directory has content that contradicts this invocation."""


class ProjectError(AstraError):
    """A problem cannot be prepared; its samples are missing, never failed.

    Attributes:
        cause: the error without its location, to group problems with the same cause.
        where: the location concerned, or ''.
        problem_id: the problem concerned, or '' while unknown.
    """

    def __init__(self, cause: str, *, where: str = "", problem_id: str = "") -> None:
        of = f"problem {problem_id}" if problem_id else ""
        super().__init__(": ".join(filter(None, (of, where, cause))))
        self.cause = cause
        self.where = where
        self.problem_id = problem_id

    def of_problem(self, problem_id: str) -> Self:
        """Return the same error with the problem's id."""
        return type(self)(self.cause, where=self.where, problem_id=problem_id)


class SourceError(ProjectError):
    """Project files cannot be fetched: not found, forbidden, unreachable."""


class ArchiveError(ProjectError):
    """An archive is broken, malicious (paths, links) or larger than allowed."""


class ExpectationError(ProjectError):
    """The expected tests cannot be discovered, or do not match the reported tests."""


class ProviderError(AstraError):
    """A request to a provider got no usable response.

    Attributes:
        status: HTTP status, or None if no response arrived.
        code: the provider's error code, or None.
        hint_s: pause in seconds requested by the provider, or None; for RateLimited and Overloaded.
        usage: tokens billed despite the error, if the provider reported them.
        cost_usd: US dollars spent on all attempts so far.
        cost_estimated: True if `cost_usd` includes estimated tokens that the provider did not report.
        attempts: number of attempts when the error left the pool.
        meets_all: True if the error concerns something that all requests of the pool share.
        may_be_billed: True if the request timed out after it was sent, so the model may have worked on it.
        reply: the provider's message in one line; '' if no response arrived.
        likeness: key that groups similar errors: status, code and message without numbers and request ids;
            '' if no response arrived.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        hint_s: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.hint_s = hint_s
        self.usage = usage
        self.meets_all = False
        self.may_be_billed = False
        self.reply = ""
        self.likeness = ""
        self.cost_usd: float | None = None
        self.cost_estimated = False
        self.attempts = 1


class RateLimited(ProviderError):  # noqa: N818 - a state of the provider, not a mistake
    """The provider asks to slow down (429 and similar)."""


class Overloaded(ProviderError):  # noqa: N818 - a state of the provider, not a mistake
    """The provider is short of capacity (503 or 529)."""


class TransientError(ProviderError):
    """Connection, DNS, timeout or 5xx error; the same request may succeed later."""


class TruncatedStream(TransientError):  # noqa: N818 - named after the condition
    """The stream ended without its terminal marker, stalled after some text, or did not end.

    Every such attempt costs its full price, so it is retried only once.
    """


class RequestRejected(ProviderError):  # noqa: N818 - named after the condition
    """This request can never succeed (400, 403, 404, 413, 422, or an unsupported parameter)."""


class PoolUnusable(ProviderError):  # noqa: N818 - a state of the pool
    """No request of this pool can succeed, because of its key, permission, quota or spend limit."""


class BudgetExhausted(PoolUnusable):
    """The request would exceed the user's limit (`--budget-usd`).

    Attributes:
        raise_to_usd: limit in US dollars that admits the request and as much again.
    """

    raise_to_usd = 0.0


class SandboxError(AstraError):
    """The tests could not be run in a healthy container."""


class EngineUnavailable(SandboxError):  # noqa: N818 - a state of the engine
    """No Docker Engine responds on the socket."""


class ImageError(SandboxError):
    """An image is missing, cannot be built, or lacks a required program (bash).

    Attributes:
        output: the complete output of the build or installation, or ''.
    """

    def __init__(self, message: str, *, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class ContainerLost(SandboxError):  # noqa: N818 - named after the condition
    """The container vanished, was killed from outside, or the engine restarted."""


class NodesLost(SandboxError):  # noqa: N818 - named after the condition
    """Several nodes of a cluster were lost one after the other while they ran the same job."""


class StorageError(AstraError):
    """A log or table cannot be written: disk full, read-only, or deleted."""


class InvariantError(AstraError):
    """Planned samples and recorded lines do not match at the end of the run."""
