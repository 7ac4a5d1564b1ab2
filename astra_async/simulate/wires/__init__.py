"""The providers' wire formats on the server side, one file per provider, written from their documentation.

Response formats are in `astra_async.response_formats`. Nothing of `astra_async.asking.providers` is imported,
so that client and server check each other.
"""
