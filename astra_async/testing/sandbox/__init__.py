"""Runs tests of generated code in Docker containers: life-cycle and sweeping.

The way of a job: `docker_sandbox` (slots, containers made ahead) -> `hardened` (its configuration) ->
`execution` (upload, start, watch, read) -> `resultfiles`. Inside the container `script` runs the
command; `sweep` removes what was left.
"""
