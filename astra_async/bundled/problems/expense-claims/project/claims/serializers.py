"""How claims are read from requests and written to answers."""

from rest_framework import serializers

from claims.models import Claim


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
