"""The throttle of one provider pool: limits, pauses, retries, prompt-cache warming and the budget.

Start at `pool.py` (the life of a call) and `gate.py` (when the next request may go). Out of scope:
fairness between several processes that share a key; their rejections are all we learn of each other.
"""

from astra_async.asking.throttle.account import Account, account_of
from astra_async.asking.throttle.bucket import BucketState
from astra_async.asking.throttle.budget import Budget
from astra_async.asking.throttle.pool import Pool
from astra_async.asking.throttle.state import PoolEvent, PoolState

__all__ = ["Account", "BucketState", "Budget", "Pool", "PoolEvent", "PoolState", "account_of"]
