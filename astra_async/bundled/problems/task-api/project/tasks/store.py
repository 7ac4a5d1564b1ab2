"""Users and tasks in memory; what is handed out are copies."""

from itertools import count


class Store:
    def __init__(self):
        self.users = {}
        self._tasks = {}
        self._ids = count(1)

    def add_user(self, username, password_hash):
        self.users[username] = {"username": username, "password_hash": password_hash}

    def user(self, username):
        """The user's record, or None; user names are compared as they are."""
        return self.users.get(username)

    def add_task(self, owner, **fields):
        task = {"id": next(self._ids), "owner": owner, **fields}
        self._tasks[task["id"]] = task
        return dict(task)

    def tasks(self):
        """The tasks of all users, those added last first."""
        return [dict(task) for task in reversed(self._tasks.values())]

    def task(self, task_id):
        task = self._tasks.get(task_id)
        return None if task is None else dict(task)

    def update_task(self, task_id, **fields):
        self._tasks[task_id].update(fields)
        return dict(self._tasks[task_id])
