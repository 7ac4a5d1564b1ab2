"""A service for tasks."""

from flask import Flask

from tasks.accounts import accounts
from tasks.config import Config
from tasks.errors import ApiError, answer
from tasks.store import Store


def create_app(config=Config):
    """A new application with an empty store, which is `app.extensions["store"]`."""
    app = Flask(__name__)
    app.config.from_object(config)
    app.extensions["store"] = Store()
    app.register_error_handler(ApiError, answer)
    app.register_blueprint(accounts)

    @app.get("/")
    def status():
        return {"service": "tasks", "status": "up"}

    return app
