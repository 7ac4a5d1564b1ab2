"""The image that a problem's tests run in: named by the CSV, bundled, or made from the project itself.

`stacks` reads what a project needs (pure), `resolve` decides which image a problem gets, `build`, `warm` and
`base_image` make images with the engine.
"""
