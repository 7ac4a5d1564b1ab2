"""Requests to models in batches: half the price, answers within a day, no request paid twice.

`batch_pool` accepts the same requests as the throttle's pool, collects them and sends them as files that fit
the provider's limits. DIR/batches.jsonl is a write-ahead log of every batch (`batch_log`). Results are saved
in DIR/batches/ before they are used. Each provider's batch interface is in a separate module.
"""
