import jwt

LONG_AGO = 1_000_000_000
FAR_AHEAD = 32_000_000_000


def titles(response):
    assert response.status_code == 200
    return [task["title"] for task in response.get_json()]


def test_a_login_is_answered_with_a_token(app, client):
    client.post("/register", json={"username": "Ada", "password": "correct horse"})
    response = client.post("/login", json={"username": "ada", "password": "correct horse"})
    assert response.status_code == 200
    claims = jwt.decode(response.get_json()["token"], app.config["SECRET_KEY"], algorithms=["HS256"])
    assert claims["sub"] == "Ada"
    assert claims["exp"] - claims["iat"] == 3600


def test_tasks_are_for_those_who_have_a_valid_token(app, client, login):
    headers = login("ada")
    secret = app.config["SECRET_KEY"]
    claims = {"sub": "ada", "iat": LONG_AGO, "exp": FAR_AHEAD}
    good = jwt.encode(claims, secret, algorithm="HS256")
    refused = [
        None,
        "Bearer",
        f"Basic {good}",
        "Bearer x.y.z",
        f"Bearer {jwt.encode({**claims, 'exp': LONG_AGO + 1}, secret, algorithm='HS256')}",
        f"Bearer {jwt.encode(claims, secret[::-1], algorithm='HS256')}",
        f"Bearer {jwt.encode(claims, None, algorithm='none')}",
        f"Bearer {jwt.encode({**claims, 'sub': 'nobody'}, secret, algorithm='HS256')}",
    ]
    for value in refused:
        response = client.get("/tasks", headers={} if value is None else {"Authorization": value})
        assert response.status_code == 401, value
        assert response.get_json() == {"error": "Not authenticated"}
    assert client.get("/tasks", headers={"Authorization": f"Bearer {good}"}).status_code == 200
    assert client.get("/tasks", headers=headers).status_code == 200


def test_a_task_is_added(client, login):
    headers = login("ada")
    response = client.post("/tasks", json={"title": " Write tests ", "done": True}, headers=headers)
    assert response.status_code == 201
    assert response.get_json() == {"id": 1, "title": "Write tests", "due": None, "done": False}
    second = client.post("/tasks", json={"title": "Run them", "due": "2031-02-28"}, headers=headers)
    assert second.get_json() == {"id": 2, "title": "Run them", "due": "2031-02-28", "done": False}


def test_invalid_tasks_are_refused(client, login):
    headers = login("ada")
    client.post("/tasks", json={"title": "Write tests"}, headers=headers)
    for body in (
        {},
        {"title": "  "},
        {"title": 7},
        {"title": "x" * 101},
        {"title": "x", "due": "2031-02-29"},
        {"title": "x", "due": "28.2.2031"},
    ):
        response = client.post("/tasks", json=body, headers=headers)
        assert (response.status_code, response.get_json()) == (400, {"error": "Invalid task"}), body
    changed = client.patch("/tasks/1", json={"done": "yes"}, headers=headers)
    assert (changed.status_code, changed.get_json()) == (400, {"error": "Invalid task"})
    assert titles(client.get("/tasks", headers=headers)) == ["Write tests"]


def test_tasks_are_listed_by_due_date(client, login):
    headers = login("ada")
    for title, due in (
        ("b", "2031-05-01"),
        ("none", None),
        ("a", "2030-12-31"),
        ("c", "2031-05-01"),
        ("none too", None),
    ):
        client.post("/tasks", json={"title": title, "due": due}, headers=headers)
    assert titles(client.get("/tasks", headers=headers)) == ["a", "b", "c", "none", "none too"]
    client.patch("/tasks/4", json={"done": True}, headers=headers)
    assert titles(client.get("/tasks?done=true", headers=headers)) == ["c"]
    assert titles(client.get("/tasks?done=false", headers=headers)) == ["a", "b", "none", "none too"]


def test_a_change_leaves_the_rest_alone(client, login):
    headers = login("ada")
    client.post("/tasks", json={"title": "Write tests", "due": "2031-05-01"}, headers=headers)
    done = client.patch("/tasks/1", json={"done": True, "id": 9, "owner": "bob"}, headers=headers)
    assert done.status_code == 200
    assert done.get_json() == {"id": 1, "title": "Write tests", "due": "2031-05-01", "done": True}
    undated = client.patch("/tasks/1", json={"due": None}, headers=headers)
    assert undated.get_json() == {"id": 1, "title": "Write tests", "due": None, "done": True}


def test_users_see_and_change_only_their_own_tasks(client, login):
    ada, bob = login("ada"), login("bob")
    client.post("/tasks", json={"title": "Ada's"}, headers=ada)
    client.post("/tasks", json={"title": "Bob's"}, headers=bob)
    assert titles(client.get("/tasks", headers=bob)) == ["Bob's"]
    for task_id in (1, 3):
        response = client.patch(f"/tasks/{task_id}", json={"done": True}, headers=bob)
        assert (response.status_code, response.get_json()) == (404, {"error": "Task not found"})
    assert client.get("/tasks", headers=ada).get_json() == [
        {"id": 1, "title": "Ada's", "due": None, "done": False}
    ]
