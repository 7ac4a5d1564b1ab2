"""Registration and login."""

import re

from flask import Blueprint, current_app, request
from werkzeug.security import check_password_hash, generate_password_hash

from tasks.auth import make_token
from tasks.errors import ApiError

accounts = Blueprint("accounts", __name__)


def credentials():
    body = request.get_json(silent=True) or {}
    username, password = body.get("username"), body.get("password")
    return (
        username if isinstance(username, str) else "",
        password if isinstance(password, str) else "",
    )


def find_user(username):
    users = current_app.extensions["store"].users.values()
    return next((user for user in users if user["username"].lower() == username.lower()), None)


@accounts.post("/register")
def register():
    username, password = credentials()
    if not re.fullmatch(r"[A-Za-z0-9]{3,20}", username) or len(password) < 8:
        raise ApiError(400, "Invalid account")
    if find_user(username):
        raise ApiError(409, "Username taken")
    current_app.extensions["store"].add_user(username, generate_password_hash(password))
    return {"username": username}, 201


@accounts.post("/login")
def login():
    username, password = credentials()
    user = find_user(username)
    if user is None or not check_password_hash(user["password_hash"], password):
        raise ApiError(401, "Wrong username or password")
    return {"token": make_token(user["username"])}
