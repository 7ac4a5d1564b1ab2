"""Runs tests of generated code in Docker containers: life-cycle, images, sweeping.

The way of a job: `pool` (slots, containers made ahead) -> `config` (the hardened container) ->
`execution` (upload, start, watch, read) -> `resultfiles`. Inside the container `script` runs the
command. `images` and `base_image` make what containers are made of; `sweep` removes what was left.
"""
