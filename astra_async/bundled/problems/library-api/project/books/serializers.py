"""How books and loans are read from requests and written to answers."""

from rest_framework import serializers

from books.models import Book, Loan
