"""Errors that are answered as JSON: raise ApiError anywhere below a request."""

from flask import jsonify


class ApiError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        self.message = message


def answer(error):
    return jsonify(error=error.message), error.status
