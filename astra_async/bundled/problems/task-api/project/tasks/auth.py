"""Tokens: making them, and learning from them who sends a request."""


def make_token(username):
    """A token that says for TOKEN_LIFETIME_S seconds that its bearer is this user."""
    raise NotImplementedError


def current_username():
    """The user who sends the request; raises ApiError(401) where no valid token says so."""
    raise NotImplementedError
