"""Runs tests of generated code in Docker containers: life-cycle and sweeping.

The way of a job: `docker_sandbox` (slots, containers made ahead) -> `containers` (made, started, removed) ->
`hardened` (their configuration) -> `job` (upload, tests, reports) -> `execution` (one command, watched) ->
`resultfiles`. `fitness` is what an image leaves to tests, `keeper` the first process of every container,
`seccomp` what none of its processes may do; `sweep` removes what was left.
"""
