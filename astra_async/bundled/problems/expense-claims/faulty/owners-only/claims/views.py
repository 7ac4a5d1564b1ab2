"""What the service answers to requests."""

from django.db.models import Sum
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from claims.models import Claim
from claims.serializers import ClaimSerializer

Status = Claim.Status


class Conflict(APIException):
    status_code = 409


class ClaimViewSet(mixins.CreateModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    serializer_class = ClaimSerializer
    permission_classes = [IsAuthenticated]

    def get_queryset(self):
        return Claim.objects.filter(owner=self.request.user)

    def list(self, request):
        claims = self.get_queryset().order_by("-spent_on", "-id")
        total = claims.aggregate(sum=Sum("amount"))["sum"] or 0
        return Response({"total": f"{total:.2f}", "results": self.get_serializer(claims, many=True).data})

    def perform_create(self, serializer):
        user = self.request.user
        serializer.save(owner=user, department=user.departments.first())

    @action(detail=True, methods=["post"])
    def submit(self, request, pk):
        claim = self.get_object()
        require(claim, Status.DRAFT, Status.REJECTED)
        return self.change(claim, status=Status.SUBMITTED, decided_by=None, reason="")

    def change(self, claim, **fields):
        for name, value in fields.items():
            setattr(claim, name, value)
        claim.save()
        return Response(self.get_serializer(claim).data)


def require(claim, *statuses):
    if claim.status not in statuses:
        raise Conflict(f"The claim is {claim.status}")
