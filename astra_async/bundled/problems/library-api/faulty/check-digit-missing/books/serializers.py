"""How books and loans are read from requests and written to answers."""

import re

from rest_framework import serializers

from books.models import Book, Loan


class BookSerializer(serializers.ModelSerializer):
    isbn = serializers.CharField()
    available = serializers.SerializerMethodField()

    class Meta:
        model = Book
        fields = ["id", "title", "author", "isbn", "year", "copies", "available"]

    def get_available(self, book):
        return book.copies - book.loans.filter(returned=False).count()

    def validate_isbn(self, isbn):
        if not re.fullmatch(r"[0-9]{13}", isbn):
            raise serializers.ValidationError("Invalid ISBN")
        if Book.objects.filter(isbn=isbn).exists():
            raise serializers.ValidationError("A book with this ISBN exists")
        return isbn


class LoanSerializer(serializers.ModelSerializer):
    borrower = serializers.CharField(source="borrower.username", read_only=True)

    class Meta:
        model = Loan
        fields = ["id", "book", "borrower", "returned"]
