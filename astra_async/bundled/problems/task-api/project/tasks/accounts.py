"""Registration and login."""

from flask import Blueprint

accounts = Blueprint("accounts", __name__)
