"""Tokens: making them, and learning from them who sends a request."""

import time

import jwt
from flask import current_app, request

from tasks.errors import ApiError


def make_token(username)
    """A token that says for TOKEN_LIFETIME_S seconds that its bearer is this user."""
    now = int(time.time())
    claims = {"sub": username, "iat": now, "exp": now + current_app.config["TOKEN_LIFETIME_S"]}
    return jwt.encode(
        claims, current_app.config["SECRET_KEY"], algorithm=current_app.config["TOKEN_ALGORITHM"]
    )


def current_username():
    """The user who sends the request; raises ApiError(401) where no valid token says so."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer":
        raise ApiError(401, "Not authenticated")
    try:
        claims = jwt.decode(
            token, current_app.config["SECRET_KEY"], algorithms=[current_app.config["TOKEN_ALGORITHM"]]
        )
    except jwt.InvalidTokenError as error:
        raise ApiError(401, "Not authenticated") from error
    user = current_app.extensions["store"].user(claims.get("sub"))
    if user is None:
        raise ApiError(401, "Not authenticated")
    return user["username"]
