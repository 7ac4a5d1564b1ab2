"""The tasks of the user who is logged in."""

from flask import Blueprint

api = Blueprint("api", __name__)
