"""Model calls as batches: half the price, within a day, and nothing paid twice.

A batch model's pool (`batch_pool`) takes the same requests as the throttle's, gathers them, and sends them as
files in windows that fit the provider's limits. What was sent is in DIR/batches.jsonl before it is sent
(`batch_log`); what came back lies in DIR/batches/ before anybody reads it. One file for each interface.
"""
