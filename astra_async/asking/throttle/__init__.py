"""Throttle of one model's pool: rate limits, pauses, retries, prompt-cache warming and the budget.

Start at `pool.py` (the life cycle of a call) and `limiter.py` (when the next request may be sent). Processes
that share an API key are not coordinated: each process adapts to the others only through rejections. Rule
numbers in comments refer to docs/development/throttle.md. The leader of a prompt is its first request, which
writes the prompt cache while other requests with the same prompt wait.
"""

from astra_async.asking.throttle.budget import Budget
from astra_async.asking.throttle.pool import Pool
from astra_async.asking.throttle.rates import Account
from astra_async.types.pools import PoolEvent, PoolState

__all__ = ["Account", "Budget", "Pool", "PoolEvent", "PoolState"]
