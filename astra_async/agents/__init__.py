"""Agents that work on a problem in a container and leave a solution.

`catalog` is what is known of each agent, `installing` puts one into a volume. The way of a sample:
`agent_runs` (slots) -> `workplace` (its container) -> the agent, whose model calls go over `relay` to the
gateway in this process -> `left_behind` (what it changed, as an answer's text).
"""
