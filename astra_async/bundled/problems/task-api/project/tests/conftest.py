import pytest

from tasks import create_app


@pytest.fixture
def app():
    return create_app()


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def login(client):
    """A function that registers a user and returns the headers of their requests."""

    def login(username):
        account = {"username": username, "password": "correct horse"}
        client.post("/register", json=account)
        token = client.post("/login", json=account).get_json()["token"]
        return {"Authorization": f"Bearer {token}"}

    return login
