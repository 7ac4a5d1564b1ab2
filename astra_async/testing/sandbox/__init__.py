"""Run tests of generated code in Docker containers, and remove containers left by dead runs.

A job passes through these modules: `docker_sandbox` (slots, containers created ahead), `containers`
(creation, start, removal), `hardened` (container configuration), `job` (upload, tests, reports), `execution`
(one command with limits) and `resultfiles` (report files). `looking` inspects an image, `keeper` is the first
process of every container, `bounded_layers` limits written data, and `sweep` removes leftover containers.
"""
