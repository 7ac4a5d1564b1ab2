"""The providers' wire formats, seen from the server: one file for each, written from their documents.

What answers look like is `astra_async.served`'s. This package imports nothing of
`astra_async.asking.providers`: the two sides of the wire check each other.
"""
