"""What the library answers to requests."""

from rest_framework import viewsets

from books.models import Book, Loan
