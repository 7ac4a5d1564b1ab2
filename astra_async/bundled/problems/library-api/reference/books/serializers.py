"""How books and loans are read from requests and written to answers."""

import re

from rest_framework import serializers

from books.models import Book, Loan


def is_isbn(text):
    if not re.fullmatch(r"[0-9]{13}", text):
        return False
    digits = [int(digit) for digit in text]
    return (sum(digits[0::2]) + 3 * sum(digits[1::2])) % 10 == 0


class BookSerializer(serializers.ModelSerializer):
    isbn = serializers.CharField()
    available = serializers.SerializerMethodField()

    class Meta:
        model = Book
        fields = ["id", "title", "author", "isbn", "year", "copies", "available"]

    def get_available(self, book):
        return book.copies - book.loans.filter(returned=False).count()

    def validate_isbn(self, isbn):
        if not is_isbn(isbn):
            raise serializers.ValidationError("Invalid ISBN")
        if Book.objects.filter(isbn=isbn).exists():
            raise serializers.ValidationError("A book with this ISBN exists")
        return isbn


class LoanSerializer(serializers.ModelSerializer):
    borrower = serializers.CharField(source="borrower.username", read_only=True)

    class Meta:
        model = Loan
        fields = ["id", "book", "borrower", "returned"]
