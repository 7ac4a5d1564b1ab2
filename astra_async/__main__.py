"""`python -m astra_async` is the same as `astra`."""

from astra_async.cli import main

if __name__ == "__main__":
    main()
