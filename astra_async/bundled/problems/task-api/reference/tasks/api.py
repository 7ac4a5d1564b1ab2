"""The tasks of the user who is logged in."""

import re
from datetime import date

from flask import Blueprint, current_app, jsonify, request

from tasks.auth import current_username
from tasks.errors import ApiError

api = Blueprint("api", __name__, url_prefix="/tasks")


def store():
    return current_app.extensions["store"]


def shown(task):
    return {name: task[name] for name in ("id", "title", "due", "done")}


def own_task(task_id):
    task = store().task(task_id)
    if task is None or task["owner"] != current_username():
        raise ApiError(404, "Task not found")
    return task


def checked_title(value):
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= 100:
        raise ApiError(400, "Invalid task")
    return value.strip()


def checked_due(value):
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise ApiError(400, "Invalid task")
    try:
        date.fromisoformat(value)
    except ValueError as error:
        raise ApiError(400, "Invalid task") from error
    return value


def checked_done(value):
    if not isinstance(value, bool):
        raise ApiError(400, "Invalid task")
    return value


CHECKS = {"title": checked_title, "due": checked_due, "done": checked_done}


@api.before_request
def authenticate():
    current_username()


@api.post("")
def add_task():
    body = request.get_json(silent=True) or {}
    fields = {"title": checked_title(body.get("title")), "due": checked_due(body.get("due"))}
    return shown(store().add_task(current_username(), **fields, done=False)), 201


@api.get("")
def list_tasks():
    tasks = [task for task in store().tasks() if task["owner"] == current_username()]
    if request.args.get("done") in ("true", "false"):
        tasks = [task for task in tasks if task["done"] == (request.args["done"] == "true")]
    tasks.sort(key=lambda task: (task["due"] is None, task["due"] or "", task["id"]))
    return jsonify([shown(task) for task in tasks])


@api.patch("/<int:task_id>")
def change_task(task_id):
    own_task(task_id)
    body = request.get_json(silent=True) or {}
    fields = {name: check(body[name]) for name, check in CHECKS.items() if name in body}
    return shown(store().update_task(task_id, **fields))
