import jwt

ACCOUNT = {"username": "Ada", "password": "correct horse"}


def test_registering_keeps_no_password(app, client):
    response = client.post("/register", json=ACCOUNT)
    assert (response.status_code, response.get_json()) == (201, {"username": "Ada"})
    users = app.extensions["store"].users
    assert len(users) == 1
    assert "correct horse" not in repr(users)
    assert client.get("/").get_json()["status"] == "up"


def test_registering_refuses_what_is_invalid_or_taken(client):
    assert client.post("/register", json=ACCOUNT).status_code == 201
    for name in ("Ada", "ADA"):
        taken = client.post("/register", json={**ACCOUNT, "username": name})
        assert (taken.status_code, taken.get_json()) == (409, {"error": "Username taken"})
    for change in (
        {"username": "ab"},
        {"username": "a" * 21},
        {"username": "a b c"},
        {"password": "1234567"},
        {"password": None},
    ):
        invalid = client.post("/register", json={"username": "grace", "password": "12345678", **change})
        assert (invalid.status_code, invalid.get_json()) == (400, {"error": "Invalid account"}), change
    assert client.post("/register", json={"username": "grace", "password": "12345678"}).status_code == 201


def test_a_login_is_answered_with_a_token(app, client):
    client.post("/register", json=ACCOUNT)
    response = client.post("/login", json={**ACCOUNT, "username": "ada"})
    assert response.status_code == 200
    claims = jwt.decode(response.get_json()["token"], app.config["SECRET_KEY"], algorithms=["HS256"])
    assert claims["sub"] == "Ada"
    assert claims["exp"] - claims["iat"] == 3600


def test_a_wrong_login_is_refused(client):
    client.post("/register", json=ACCOUNT)
    for change in ({"password": "Correct horse"}, {"username": "bob"}, {"password": None}):
        response = client.post("/login", json={**ACCOUNT, **change})
        assert response.status_code == 401, change
        assert response.get_json() == {"error": "Wrong username or password"}
