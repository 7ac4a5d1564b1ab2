"""Rules 8 to 10 and 12: when a pool pauses, how it opens again, and when no call is answered any more."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from astra_async.errors import ProviderError

PARKED_S = 600.0
LONGEST_BACKOFF_S = 60.0
GIVE_UP_S = 1800.0
_JITTER, _MOST_JITTER_S = 0.02, 1.0
_EPISODES_BEFORE_DOUBT = 2

ATTEMPTS = 6
ERRORS_ALIKE, PROMPTS = 10, 3
_YIELDS_AFTER = 5
PROBES = 8  # one by one, with pauses that double from 2 s to a minute: four minutes in all

_FIRST_SENDS = 4
_OPEN_AFTER_S = 10


def backoff_s(failures: int, rng: random.Random) -> float:
    """Full jitter over min(60 s, 2^failures)."""
    return rng.uniform(0.0, min(LONGEST_BACKOFF_S, 2.0 ** min(failures, 10)))


class Pause:
    """The pool's shared pause (rule 8).

    Attributes:
        until: when it ends, in the pool's clock.
        reason: what began it, in one line.
        announced_until: the same without our jitter: when the provider expects us.
    """

    def __init__(self, rng: random.Random) -> None:
        self.until = self.announced_until = -math.inf
        self.reason = ""
        self._rng = rng
        self._episodes = 0

    def length_s(self, hint_s: float | None) -> float:
        """How long to pause after a signal: the hint, else half more with each episode, and jitter.

        After two episodes without an answer in between a hint alone is no longer believed: some servers say
        `retry-after: 0` or `1` until a window of a minute ends.
        """
        if hint_s is None or not math.isfinite(hint_s):
            return self._unhinted_s(self._episodes)
        doubt = self._episodes - _EPISODES_BEFORE_DOUBT
        return max(0.0, hint_s, self._unhinted_s(doubt) if doubt > 0 else 0.0)

    def _unhinted_s(self, episodes: int) -> float:
        """Never close to nothing: what is asked too soon costs a rejection."""
        return min(LONGEST_BACKOFF_S, 1.5 ** min(episodes, 14)) * self._rng.uniform(0.5, 1.0)

    def begin_episode(self) -> None:
        """A burst of signals begins."""
        self._episodes += 1

    def answered(self, episodes_since: int) -> None:
        """A request was let in; so many bursts have begun since it was sent."""
        self._episodes = min(self._episodes, episodes_since)

    def extend(self, seconds: float, reason: str, now: float) -> bool:
        """Pause until max(old end, now + seconds + a small jitter); whether the pool was not paused yet."""
        begins = self.until <= now
        until = now + seconds + self._rng.uniform(0.0, min(_MOST_JITTER_S, _JITTER * seconds))
        if until > self.until:
            self.until, self.reason = until, reason
            self.announced_until = now + seconds
        return begins


class Opening:
    """Rule 9: at most 4 sends in the first second after a pause, 8 in the next, and so on.

    A new pool begins with 4 sends and goes on with one a second until the provider shows a sign of life:
    its first headers may announce limits.
    """

    def __init__(self, now: float) -> None:
        self.reopen(now)
        self._first = True

    def reopen(self, now: float) -> None:
        """The pause is over."""
        self._first = self._open = False
        self._began_at = now
        self._last = (0, 0)  # the second of the last send, and how many went in it

    def alive(self) -> None:
        """The provider has answered, whatever it said."""
        if self._first:
            self._open = True

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        second = self._second(now)
        if self._open or second >= _OPEN_AFTER_S or self._sent_in(second) < self._allowed_in(second):
            return now
        return self._began_at + second + 1

    def sent(self, now: float) -> None:
        """A request goes out."""
        second = self._second(now)
        self._last = (second, self._sent_in(second) + 1)

    def _second(self, now: float) -> int:
        return max(0, int(now - self._began_at))

    def _sent_in(self, second: int) -> int:
        return self._last[1] if second == self._last[0] else 0

    def _allowed_in(self, second: int) -> int:
        return 1 if self._first and second else _FIRST_SENDS << second


class Row:
    """Rejections in a row, of one call, one prompt or all, with no success in between: how many, since when.

    Two that are further apart than the longest pause are two matters: nothing was asked between them.
    """

    __slots__ = ("_latest", "_since", "count")

    def __init__(self) -> None:
        self.count = 0
        self._since, self._latest = math.inf, -math.inf

    def another(self, now: float) -> None:
        """One more."""
        if now - self._latest > GIVE_UP_S + LONGEST_BACKOFF_S:
            self.count, self._since = 0, now
        self.count += 1
        self._latest = now

    def too_long(self, now: float) -> bool:
        """Whether they have gone on for as long as anybody waits."""
        return now - self._since >= GIVE_UP_S


class InVain:
    """Rules 10 and 12: attempts without an answer. One prompt may be at fault by itself: it takes three.

    Rejections, where a provider says no more than that its rate or its load is too high, end with a request
    that is let in, and with nothing else; connections may be lost meanwhile, but not as many. A prompt that
    is rejected lets others go first for a while. A hint excuses nothing: each call anew would wait for one
    that says a minute thirty times over, for days.

    Failures (a lost connection, a 5xx) are an outage until anything shows that the provider answers: an
    answer, a rejection for its rate, a refusal. A first token ends the tries one by one and no more: where
    every stream breaks each call would pay for two. An overload ends nothing, for routers send it in front
    of a dead server.

    Refusals alike, and failures with one prompt, are counted until a call has its answer.

    Attributes:
        one_by_one: one request at a time, until the provider is heard of.
    """

    def __init__(self) -> None:
        self._rejections_of: dict[str, Row] = {}  # by prompt
        self.let_in("")
        self.heard()
        self.answered()

    def let_in(self, prompt_sha256: str) -> None:
        """A request was let in: its answer has begun."""
        self.one_by_one = False
        self._rejections_of.pop(prompt_sha256, None)
        self._rejections, self._rejected_prompts, self._lost_between = Row(), set[str](), 0

    def heard(self) -> None:
        """The provider has answered, whatever it said."""
        self.one_by_one = False
        self._failures: Counter[str] = Counter()  # by prompt, also the next two
        self._probes, self._outage_at = 0, math.inf

    def answered(self) -> None:
        """A call has its answer."""
        self._likeness, self._refusals = "", Counter[str]()
        self._failures_since_answer: Counter[str] = Counter()

    def rejected(self, prompt_sha256: str, now: float) -> None:
        """A request was rejected."""
        self._rejections_of.setdefault(prompt_sha256, Row()).another(now)
        self._rejections.another(now)
        self._rejected_prompts.add(prompt_sha256)

    def failed(self, prompt_sha256: str, sent_at: float, now: float) -> int:
        """An attempt failed, sent at `sent_at`; how many tries one by one have failed since the outage began.

        0: no outage. Of requests that were in flight when it began nothing more is learned.
        """
        self._lost_between += 1
        self._failures_since_answer[prompt_sha256] += 1
        self._failures[prompt_sha256] += 1
        if self._failures.total() < ERRORS_ALIKE or len(self._failures) < PROMPTS:
            return 0
        self.one_by_one = True
        if self._probes == 0 or sent_at >= self._outage_at:
            self._probes += 1
            self._outage_at = now
        return self._probes

    def refused(self, prompt_sha256: str, error: ProviderError) -> bool:
        """A request was refused for good; whether every other one would be, too."""
        likeness = error.likeness or str(error)
        if likeness != self._likeness:
            self._likeness, self._refusals = likeness, Counter()
        self._refusals[prompt_sha256] += 1
        everybody = error.meets_all or len(self._refusals) >= PROMPTS
        return everybody and self._refusals.total() >= ERRORS_ALIKE

    def yields(self, prompt_sha256: str) -> bool:
        """Whether a prompt's calls should let others go first: they may be what holds them up."""
        known = self._rejections_of.get(prompt_sha256)
        return known is not None and known.count >= _YIELDS_AFTER

    def of_prompt(self, prompt_sha256: str, now: float) -> bool:
        """Whether a prompt was rejected for so long that one more rejection is enough for each call."""
        known = self._rejections_of.get(prompt_sha256)
        return known is not None and known.count >= ERRORS_ALIKE and known.too_long(now)

    def breaks_servers(self, prompt_sha256: str) -> bool:
        """Whether so many attempts failed with a prompt that one is enough for each further call."""
        return self._failures_since_answer[prompt_sha256] >= ERRORS_ALIKE * ATTEMPTS

    def of_all(self, now: float) -> bool:
        """Whether no call has been let in for as long as one may wait."""
        alike = self._rejections.count > self._lost_between and len(self._rejected_prompts) >= PROMPTS
        return alike and self._rejections.too_long(now)
