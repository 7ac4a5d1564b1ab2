"""How books and loans are read from requests and written to answers."""

from rest_framework import serializers

from books.models import Book, Loan


class LoanSerializer(serializers.ModelSerializer):
    borrower = serializers.CharField(source="borrower.username", read_only=True)

    class Meta:
        model = Loan
        fields = ["id", "book", "borrower", "returned"]
