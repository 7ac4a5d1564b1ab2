"""Everything that can go wrong, as one tree; the command line maps its branches to exit codes.

    AstraError
    ├── UsageError             wrong options, configuration or data                 exit 2
    │   ├── ConfigError            an option or a TOML setting
    │   ├── ProblemsError          the problems CSV (names line and column)
    │   └── ConflictError          the run directory disagrees: settings, lines, owner
    ├── ProjectError           a problem's files, manifest or tests; its samples are missing
    │   ├── SourceError            project files cannot be fetched
    │   ├── ArchiveError           an archive is broken, hostile or too large
    │   └── ExpectationError       no tests were found, or not the ones that the CSV names
    ├── ProviderError          a model call did not give an answer; the sample is missing
    │   ├── RateLimited            wait, then repeat (429 and its relatives)
    │   ├── Overloaded             the provider is short of capacity (503, 529)
    │   ├── TransientError         connection, time-out, 5xx
    │   │   └── TruncatedStream        the stream ended without its terminal marker
    │   ├── RequestRejected        this request can never succeed
    │   └── PoolUnusable           key, quota or spend: no request of this pool can succeed
    │       └── BudgetExhausted        our own ceiling (`--budget-usd`)
    ├── SandboxError           Docker trouble; the sample is missing
    │   ├── EngineUnavailable      no engine answers                                exit 3
    │   ├── ImageError             an image is missing, unbuildable or unfit
    │   ├── ContainerLost          the container vanished or the engine restarted
    │   └── NodesLost              several machines of a cluster were lost while they ran one job
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
    """Root of the tree; its message is one clear line: what, where, and the remedy.

    Secrets are masked in every message as it is made, wherever it will be shown or recorded.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(mask(message))


class UsageError(AstraError):
    """The call, the configuration or the data is wrong; nothing was changed."""


class IncompleteRun(UsageError):  # noqa: N818 - a state of the run
    """A headline was asked of a run whose planned samples have not all a result."""


class ConfigError(UsageError):
    """An option or a TOML setting is unknown, malformed or contradicts another."""


class ProblemsError(UsageError):
    """The problems CSV cannot be used; the message names the line and the column."""


class ConflictError(UsageError):
    """The run directory holds something that this call contradicts."""


class ProjectError(AstraError):
    """A problem cannot be prepared; its samples are missing, never failed.

    Attributes:
        cause: what is wrong, without where; several problems may share it.
        where: the location that was looked at, or empty.
        problem_id: whose files they are, or empty while that is not known.
    """

    def __init__(self, cause: str, *, where: str = "", problem_id: str = "") -> None:
        of = f"problem {problem_id}" if problem_id else ""
        super().__init__(": ".join(filter(None, (of, where, cause))))
        self.cause = cause
        self.where = where
        self.problem_id = problem_id

    def of_problem(self, problem_id: str) -> Self:
        """The same error, naming the problem."""
        return type(self)(self.cause, where=self.where, problem_id=problem_id)


class SourceError(ProjectError):
    """Project files cannot be fetched: not found, forbidden, unreachable."""


class ArchiveError(ProjectError):
    """An archive is broken, hostile (paths, links) or larger than allowed."""


class ExpectationError(ProjectError):
    """The expected tests cannot be learned, or do not match what the tests report."""


class ProviderError(AstraError):
    """A model call gave no answer.

    Attributes:
        status: HTTP status, or None when no response arrived.
        code: the provider's own error code, or None.
        hint_s: seconds to wait as the provider said, or None: of RateLimited and Overloaded.
        usage: tokens billed although the call failed, where the provider said so.
        cost_usd: US dollars spent on all attempts of the call so far.
        cost_estimated: tokens that the provider did not tell are estimated in it.
        attempts: attempts made when the error left the pool.
        meets_all: it names what every request of the pool shares: all would meet it alike.
        may_be_billed: the request timed out after it was sent, so the model may have worked on it.
        reply: the provider's own words, in one line; empty when no response arrived.
        likeness: equal for errors that say the same: status, code and sentence, without numbers and names of
            requests in it; empty when no response arrived.
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
    """The provider asks to slow down (429 and its relatives)."""


class Overloaded(ProviderError):  # noqa: N818 - a state of the provider, not a mistake
    """The provider is short of capacity (503 or 529)."""


class TransientError(ProviderError):
    """Connection, DNS, time-out or a 5xx: the same request may succeed later."""


class TruncatedStream(TransientError):  # noqa: N818 - names what was seen
    """The stream ended without its terminal marker, fell silent after some text, or had no end.

    Every attempt of that kind costs its full price, so that it is repeated once only.
    """


class RequestRejected(ProviderError):  # noqa: N818 - names what was seen
    """This request can never succeed (400, 403, 404, 413, 422, a parameter that the model rejects)."""


class PoolUnusable(ProviderError):  # noqa: N818 - a state of the pool
    """No request of this pool can succeed: key, permission, quota or spend limit."""


class BudgetExhausted(PoolUnusable):
    """The ceiling set by the user (`--budget-usd`) would be passed."""


class SandboxError(AstraError):
    """The tests could not be run in a healthy container."""


class EngineUnavailable(SandboxError):  # noqa: N818 - a state of the engine
    """No Docker Engine answers on the socket."""


class ImageError(SandboxError):
    """An image is missing, cannot be built, or lacks what a run needs (bash).

    Attributes:
        output: the whole output of the build or installation, empty where there is none.
    """

    def __init__(self, message: str, *, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class ContainerLost(SandboxError):  # noqa: N818 - names what was seen
    """The container vanished, was killed from outside, or the engine restarted."""


class NodesLost(SandboxError):  # noqa: N818 - names what was seen
    """Several machines of a cluster were lost, one after the other, while they ran the same job."""


class StorageError(AstraError):
    """A log or a table cannot be written: disk full, read-only, gone."""


class InvariantError(AstraError):
    """At the end, planned samples and recorded lines do not match."""
