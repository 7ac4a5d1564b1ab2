"""How claims are read from requests and written to answers."""

from decimal import Decimal

from django.utils import timezone
from rest_framework import serializers

from claims.models import Claim

RECEIPT_ABOVE = Decimal("100.00")


class ClaimSerializer(serializers.ModelSerializer):
    owner = serializers.CharField(source="owner.username", read_only=True)
    department = serializers.CharField(source="department.name", read_only=True)
    decided_by = serializers.CharField(source="decided_by.username", read_only=True, default=None)

    class Meta:
        model = Claim
        fields = [
            "id",
            "owner",
            "department",
            "title",
            "category",
            "amount",
            "spent_on",
            "receipt",
            "status",
            "decided_by",
            "reason",
        ]
        read_only_fields = ["status", "reason"]

    def validate_amount(self, amount):
        if amount <= 0:
            raise serializers.ValidationError("Must be above zero")
        return amount

    def validate_spent_on(self, day):
        if day > timezone.localdate():
            raise serializers.ValidationError("Lies in the future")
        return day

    def validate(self, fields):
        if fields["amount"] > RECEIPT_ABOVE and not fields.get("receipt"):
            raise serializers.ValidationError({"receipt": "Needed above 100.00"})
        return fields
