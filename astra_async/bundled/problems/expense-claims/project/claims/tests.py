import datetime

from django.contrib.auth import get_user_model
from rest_framework.test import APIClient, APITestCase

from claims.models import Claim, Department

TAXI = {"title": "Taxi", "category": "travel", "amount": "18.50", "spent_on": "2024-03-05"}


class ExpensesTestCase(APITestCase):
    """Ada and Bob work in Sales for Mia; Cleo works in Research for Rex; Sol is staff."""

    def setUp(self):
        users = get_user_model().objects
        for name in ("ada", "bob", "mia", "cleo", "rex"):
            setattr(self, name, users.create(username=name))
        self.sol = users.create(username="sol", is_staff=True)
        self.sales = self.department("Sales", self.mia, [self.ada, self.bob, self.mia])
        self.research = self.department("Research", self.rex, [self.cleo, self.rex, self.sol])

    def department(self, name, manager, members):
        department = Department.objects.create(name=name, manager=manager)
        department.members.set(members)
        return department

    def claim(self, owner, status="submitted", **more):
        department = owner.departments.get()
        fields = {**TAXI, "owner": owner, "department": department, "status": status, **more}
        return Claim.objects.create(**fields)

    def ask(self, user, method, path, data=None):
        client = APIClient()
        if user:
            client.force_authenticate(user)
        response = getattr(client, method)(f"/api/{path}", data)
        return response.status_code, response.json()

    def act(self, user, claim, action, **data):
        return self.ask(user, "post", f"claims/{claim.id}/{action}/", data)

    def titles(self, user, query=""):
        status, body = self.ask(user, "get", f"claims/{query}")
        self.assertEqual(status, 200)
        return [claim["title"] for claim in body["results"]]


class WritingTests(ExpensesTestCase):
    def test_a_claim_begins_as_a_draft_of_the_user(self):
        self.assertEqual(self.client.get("/api/status/").json(), {"service": "expenses", "status": "up"})
        self.assertEqual(self.client.post("/api/claims/", TAXI).status_code, 401)
        status, body = self.ask(
            self.ada,
            "post",
            "claims/",
            {**TAXI, "owner": self.bob.id, "status": "approved", "reason": "Sure"},
        )
        claim = Claim.objects.get()
        self.assertEqual(status, 201)
        self.assertEqual(
            body,
            {
                "id": claim.id,
                "owner": "ada",
                "department": "Sales",
                "title": "Taxi",
                "category": "travel",
                "amount": "18.50",
                "spent_on": "2024-03-05",
                "receipt": "",
                "status": "draft",
                "decided_by": None,
                "reason": "",
            },
        )
        self.assertEqual((claim.owner, claim.department), (self.ada, self.sales))

    def test_invalid_claims_are_refused(self):
        self.ask(self.ada, "post", "claims/", {**TAXI, "spent_on": str(datetime.date.today())})
        self.assertEqual(Claim.objects.count(), 1)
        for change, field, message in (
            ({"amount": "0"}, "amount", "Must be above zero"),
            ({"amount": "-3"}, "amount", "Must be above zero"),
            ({"spent_on": "2999-01-01"}, "spent_on", "Lies in the future"),
            ({"amount": "100.01"}, "receipt", "Needed above 100.00"),
            ({"amount": "250", "receipt": "  "}, "receipt", "Needed above 100.00"),
        ):
            self.assertEqual(
                self.ask(self.ada, "post", "claims/", {**TAXI, **change}), (400, {field: [message]})
            )
        for change in ({"category": "parties"}, {"amount": "1.005"}, {"title": ""}):
            status, body = self.ask(self.ada, "post", "claims/", {**TAXI, **change})
            self.assertEqual((status, list(body)), (400, list(change)))
        self.assertEqual(Claim.objects.count(), 1)
        self.assertEqual(self.ask(self.ada, "post", "claims/", {**TAXI, "amount": "100.00"})[0], 201)
        self.assertEqual(
            self.ask(self.ada, "post", "claims/", {**TAXI, "amount": "100.01", "receipt": "A7"})[0], 201
        )


class ReadingTests(ExpensesTestCase):
    def test_people_see_their_own_claims_and_those_they_decide_on(self):
        self.claim(self.ada, "draft", title="Ada's draft")
        self.claim(self.ada, "approved", title="Ada's train", spent_on="2024-03-04")
        self.claim(self.bob, "rejected", title="Bob's lunch", spent_on="2024-03-03")
        self.claim(self.mia, "draft", title="Mia's draft", spent_on="2024-03-06")
        self.claim(self.cleo, "submitted", title="Cleo's lens", spent_on="2024-03-04")
        self.assertEqual(self.titles(self.ada), ["Ada's draft", "Ada's train"])
        self.assertEqual(self.titles(self.bob), ["Bob's lunch"])
        self.assertEqual(self.titles(self.mia), ["Mia's draft", "Ada's train", "Bob's lunch"])
        self.assertEqual(self.titles(self.rex), ["Cleo's lens"])
        self.assertEqual(self.titles(self.sol), ["Cleo's lens", "Ada's train", "Bob's lunch"])
        self.assertEqual(self.ask(None, "get", "claims/")[0], 401)
        draft, sent = Claim.objects.get(title="Ada's draft"), Claim.objects.get(title="Ada's train")
        self.assertEqual(self.ask(self.ada, "get", f"claims/{draft.id}/")[0], 200)
        self.assertEqual(self.ask(self.mia, "get", f"claims/{sent.id}/")[1]["owner"], "ada")
        for user, claim in ((self.mia, draft), (self.sol, draft), (self.bob, sent), (self.rex, sent)):
            self.assertEqual(self.ask(user, "get", f"claims/{claim.id}/")[0], 404)

    def test_claims_of_a_month_are_added_up(self):
        self.claim(self.ada, "approved", title="Train", amount="80.10", spent_on="2024-02-29")
        self.claim(self.ada, "approved", title="Hotel", amount="99.90", spent_on="2024-03-01")
        self.claim(self.bob, "submitted", title="Lunch", amount="12.05", spent_on="2024-03-31")
        self.claim(self.bob, "rejected", title="Dinner", amount="70", spent_on="2024-04-01")
        self.claim(self.bob, "approved", title="Old train", amount="80", spent_on="2023-03-01")
        for query, titles, total in (
            ("", ["Dinner", "Lunch", "Hotel", "Train", "Old train"], "342.05"),
            ("?month=2024-03", ["Lunch", "Hotel"], "111.95"),
            ("?month=2024-05", [], "0.00"),
        ):
            self.assertEqual(self.titles(self.mia, query), titles)
            self.assertEqual(self.ask(self.mia, "get", f"claims/{query}")[1]["total"], total)
        for month in ("March", "2024-13"):
            self.assertEqual(
                self.ask(self.mia, "get", f"claims/?month={month}"), (400, {"month": ["Invalid value"]})
            )


class DecidingTests(ExpensesTestCase):
    def test_only_the_owner_submits_and_only_what_is_not_under_way(self):
        draft = self.claim(self.ada, "draft")
        rejected = self.claim(self.ada, "rejected", decided_by=self.mia, reason="Which taxi?")
        self.assertEqual(self.act(self.mia, rejected, "submit")[0], 403)
        for claim in (draft, rejected):
            status, body = self.act(self.ada, claim, "submit")
            self.assertEqual((status, body["status"]), (200, "submitted"))
            self.assertEqual((body["decided_by"], body["reason"]), (None, ""))
        self.assertEqual(self.act(self.ada, draft, "submit"), (409, {"detail": "The claim is submitted"}))

    def test_the_manager_decides_once_and_rejects_with_a_reason(self):
        good, bad = self.claim(self.ada), self.claim(self.bob)
        status, body = self.act(self.mia, good, "approve")
        self.assertEqual((status, body["status"], body["decided_by"]), (200, "approved", "mia"))
        for reason in ({}, {"reason": " "}):
            self.assertEqual(
                self.act(self.mia, bad, "reject", **reason), (400, {"reason": ["Needed to reject"]})
            )
        status, body = self.act(self.mia, bad, "reject", reason="Private")
        self.assertEqual((status, body["status"], body["reason"]), (200, "rejected", "Private"))
        self.assertEqual(
            self.act(self.mia, good, "reject", reason="Oh"), (409, {"detail": "The claim is approved"})
        )
        self.assertEqual(self.act(self.mia, bad, "approve"), (409, {"detail": "The claim is rejected"}))

    def test_nobody_decides_on_own_claims_or_on_those_of_colleagues(self):
        own = self.claim(self.mia)
        staff = self.claim(self.sol)
        for user, claim, refusal in (
            (self.mia, own, 403),
            (self.sol, staff, 403),
            (self.ada, own, 404),
            (self.cleo, staff, 404),
        ):
            for action in ("approve", "reject"):
                self.assertEqual(self.act(user, claim, action, reason="So")[0], refusal)
        self.assertEqual(self.act(self.sol, own, "approve")[1]["decided_by"], "sol")
        self.assertEqual(self.act(self.rex, staff, "approve")[1]["decided_by"], "rex")
