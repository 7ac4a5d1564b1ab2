"""The simulated prompt cache: a prompt is cached from the first token of its first answer on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SMALLEST_TOKENS = 1024  # shorter prompts are never cached (OpenAI and Anthropic alike)
_KEPT = 4096


class PromptCache:
    """Remembers prompts by (model, digest) for `ttl_s` seconds after their last use."""

    def __init__(self, ttl_s: float, clock: Callable[[], float]) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._used: dict[tuple[str, str], float] = {}

    def cached_tokens(self, model: str, prompt: str, tokens: int) -> int:
        """How many of a prompt's tokens are read from the cache, in steps of 128."""
        used = self._used.get((model, prompt))
        if used is None or self._clock() - used >= self._ttl_s or tokens < SMALLEST_TOKENS:
            return 0
        self.warm(model, prompt)
        return tokens // 128 * 128

    def warm(self, model: str, prompt: str) -> None:
        """An answer to this prompt has begun to stream."""
        now = self._clock()
        if len(self._used) >= _KEPT:
            self._used = {key: at for key, at in self._used.items() if now - at < self._ttl_s}
        if len(self._used) < _KEPT or (model, prompt) in self._used:
            self._used[model, prompt] = now
