"""Why a booking is refused."""


class BookingError(Exception):
    """A booking that cannot be made."""


class InvalidPeriod(BookingError):
    """The last day lies before the first."""


class ToolTaken(BookingError):
    """Somebody else has the tool on one of the days."""
