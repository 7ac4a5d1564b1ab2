"""What the library keeps: its books, and who has borrowed them."""

from django.conf import settings
from django.db import models


class Book(models.Model):
    title = models.CharField(max_length=200)
    author = models.CharField(max_length=100)
    isbn = models.CharField(max_length=13, unique=True)
    year = models.PositiveIntegerField()
    copies = models.PositiveIntegerField(default=1)

    def __str__(self):
        return self.title


class Loan(models.Model):
    """One copy of a book in the hands of a reader, until it is returned."""

    book = models.ForeignKey(Book, related_name="loans", on_delete=models.CASCADE)
    borrower = models.ForeignKey(settings.AUTH_USER_MODEL, related_name="loans", on_delete=models.CASCADE)
    returned = models.BooleanField(default=False)

    def __str__(self):
        return f"{self.book} to {self.borrower}"
