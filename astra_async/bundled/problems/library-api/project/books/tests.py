from django.contrib.auth import get_user_model
from rest_framework.test import APITestCase

from books.models import Book, Loan

BOOKS = [
    ("Watership Down", "Richard Adams", "9780141354965", 1972, 1),
    ("Dune", "Frank Herbert", "9780441013593", 1965, 2),
    ("Emma", "Jane Austen", "9780141439587", 1815, 1),
    ("Persuasion", "Jane Austen", "9780141439686", 1817, 1),
    ("Ulysses", "James Joyce", "9780141182803", 1922, 3),
    ("Beloved", "Toni Morrison", "9780099760115", 1987, 1),
]
NEW = {"title": "Middlemarch", "author": "George Eliot", "isbn": "9780141439549", "year": 1871, "copies": 2}


class LibraryTestCase(APITestCase):
    def setUp(self):
        for title, author, isbn, year, copies in BOOKS:
            Book.objects.create(title=title, author=author, isbn=isbn, year=year, copies=copies)
        users = get_user_model().objects
        self.staff = users.create(username="librarian", is_staff=True)
        self.ada = users.create(username="ada")
        self.bob = users.create(username="bob")
        self.dune = Book.objects.get(title="Dune")
        self.emma = Book.objects.get(title="Emma")

    def titles(self, query):
        response = self.client.get(f"/api/books/{query}")
        self.assertEqual(response.status_code, 200)
        return [book["title"] for book in response.json()["results"]]

    def act(self, user, book, action):
        self.client.force_authenticate(user)
        return self.client.post(f"/api/books/{book.id}/{action}/")


class BookTests(LibraryTestCase):
    def test_books_are_listed_by_title_five_to_a_page(self):
        first = self.client.get("/api/books/").json()
        self.assertEqual(first["count"], 6)
        self.assertIsNone(first["previous"])
        self.assertEqual(
            [book["title"] for book in first["results"]],
            ["Beloved", "Dune", "Emma", "Persuasion", "Ulysses"],
        )
        self.assertEqual(self.titles("?page=2"), ["Watership Down"])
        self.assertEqual(self.client.get("/api/status/").json()["status"], "up")

    def test_a_book_tells_how_many_copies_are_available(self):
        Loan.objects.create(book=self.dune, borrower=self.ada)
        Loan.objects.create(book=self.dune, borrower=self.bob, returned=True)
        response = self.client.get(f"/api/books/{self.dune.id}/")
        self.assertEqual(response.status_code, 200)
        self.assertEqual(
            response.json(),
            {
                "id": self.dune.id,
                "title": "Dune",
                "author": "Frank Herbert",
                "isbn": "9780441013593",
                "year": 1965,
                "copies": 2,
                "available": 1,
            },
        )

    def test_books_are_filtered_by_author_and_availability(self):
        self.assertEqual(self.titles("?author=jane"), ["Emma", "Persuasion"])
        Loan.objects.create(book=self.emma, borrower=self.ada)
        Loan.objects.create(book=self.dune, borrower=self.ada)
        Loan.objects.create(book=self.dune, borrower=self.bob, returned=True)
        self.assertEqual(
            self.titles("?available=true"), ["Beloved", "Dune", "Persuasion", "Ulysses", "Watership Down"]
        )
        self.assertEqual(self.titles("?available=false"), ["Emma"])
        self.assertEqual(self.titles("?author=AUSTEN&available=true"), ["Persuasion"])

    def test_only_staff_may_add_books(self):
        self.assertEqual(self.client.post("/api/books/", NEW).status_code, 401)
        self.client.force_authenticate(self.ada)
        self.assertEqual(self.client.post("/api/books/", NEW).status_code, 403)
        self.client.force_authenticate(self.staff)
        response = self.client.post("/api/books/", NEW)
        self.assertEqual(response.status_code, 201)
        self.assertEqual(response.json()["available"], 2)
        self.assertEqual(Book.objects.count(), 7)

    def test_an_invalid_isbn_is_refused(self):
        self.client.force_authenticate(self.staff)
        for isbn in ("9780141439548", "978014143954", "978-0-14-1439", "97801414395X9"):
            response = self.client.post("/api/books/", {**NEW, "isbn": isbn})
            self.assertEqual(response.status_code, 400, isbn)
            self.assertEqual(response.json(), {"isbn": ["Invalid ISBN"]})
        self.assertEqual(Book.objects.count(), 6)


class LoanTests(LibraryTestCase):
    def test_a_reader_borrows_a_copy(self):
        self.assertEqual(self.client.post(f"/api/books/{self.dune.id}/borrow/").status_code, 401)
        response = self.act(self.ada, self.dune, "borrow")
        self.assertEqual(response.status_code, 201)
        loan = Loan.objects.get()
        self.assertEqual(
            response.json(), {"id": loan.id, "book": self.dune.id, "borrower": "ada", "returned": False}
        )
        self.assertEqual(self.client.get(f"/api/books/{self.dune.id}/").json()["available"], 1)

    def test_a_copy_is_lent_once(self):
        self.assertEqual(self.act(self.ada, self.dune, "borrow").status_code, 201)
        again = self.act(self.ada, self.dune, "borrow")
        self.assertEqual((again.status_code, again.json()), (409, {"detail": "Already borrowed"}))
        self.assertEqual(self.act(self.bob, self.emma, "borrow").status_code, 201)
        gone = self.act(self.ada, self.emma, "borrow")
        self.assertEqual((gone.status_code, gone.json()), (409, {"detail": "No copy available"}))
        self.assertEqual(Loan.objects.count(), 2)

    def test_a_reader_returns_a_copy_once(self):
        self.act(self.ada, self.emma, "borrow")
        other = self.act(self.bob, self.emma, "return")
        self.assertEqual((other.status_code, other.json()), (409, {"detail": "Not borrowed"}))
        response = self.act(self.ada, self.emma, "return")
        self.assertEqual(response.status_code, 200)
        self.assertTrue(response.json()["returned"])
        self.assertEqual(self.act(self.ada, self.emma, "return").status_code, 409)
        self.assertEqual(self.act(self.bob, self.emma, "borrow").status_code, 201)
