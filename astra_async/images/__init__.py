"""Docker images for a problem's tests: named in the CSV, bundled, or built from the project.

`stacks` detects what a project needs (pure functions), `resolve` chooses the image of each problem, and
`build`, `warm` and `base_image` make images with Docker Engine.
"""
