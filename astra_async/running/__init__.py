"""A whole run: one sample's way (`sample`), all of them (`runner`), what is recorded (`directory`, `log`).

The package is not called `run`, since that is the public function of the package.
"""
