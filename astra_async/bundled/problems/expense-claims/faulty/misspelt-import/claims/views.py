"""What the service answers to requests."""

from datetime import datetime

from django.db.models import Q, Sum
from rest_framework import mixin, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from claims.models import Claim
from claims.serializers import ClaimSerializer

Status = Claim.Status


class Conflict(APIException):
    status_code = 409


class ClaimViewSet(mixin.CreateModelMixin, mixin.RetrieveModelMixin, viewsets.GenericViewSet):
    serializer_class = ClaimSerializer
    permission_classes = [IsAuthenticated]

    def get_queryset(self):
        user = self.request.user
        shared = Q() if user.is_staff else Q(department__manager=user)
        return Claim.objects.filter(Q(owner=user) | (shared & ~Q(status=Status.DRAFT)))

    def list(self, request):
        claims = self.get_queryset().order_by("-spent_on", "-id")
        if "month" in request.query_params:
            claims = in_month(claims, request.query_params["month"])
        total = claims.aggregate(sum=Sum("amount"))["sum"] or 0
        return Response({"total": f"{total:.2f}", "results": self.get_serializer(claims, many=True).data})

    def perform_create(self, serializer):
        user = self.request.user
        serializer.save(owner=user, department=user.departments.first())

    @action(detail=True, methods=["post"])
    def submit(self, request, pk):
        claim = self.get_object()
        if claim.owner != request.user:
            raise PermissionDenied
        require(claim, Status.DRAFT, Status.REJECTED)
        return self.change(claim, status=Status.SUBMITTED, decided_by=None, reason="")

    @action(detail=True, methods=["post"])
    def approve(self, request, pk):
        claim = self.claim_to_decide()
        return self.change(claim, status=Status.APPROVED, decided_by=request.user)

    @action(detail=True, methods=["post"])
    def reject(self, request, pk):
        claim = self.claim_to_decide()
        reason = str(request.data.get("reason") or "").strip()
        if not reason:
            raise ValidationError({"reason": ["Needed to reject"]})
        return self.change(claim, status=Status.REJECTED, decided_by=request.user, reason=reason)

    def claim_to_decide(self):
        claim = self.get_object()
        if claim.owner == self.request.user:
            raise PermissionDenied
        require(claim, Status.SUBMITTED)
        return claim

    def change(self, claim, **fields):
        for name, value in fields.items():
            setattr(claim, name, value)
        claim.save()
        return Response(self.get_serializer(claim).data)


def in_month(claims, text):
    try:
        month = datetime.strptime(text, "%Y-%m")
    except ValueError as error:
        raise ValidationError({"month": ["Invalid value"]}) from error
    return claims.filter(spent_on__year=month.year, spent_on__month=month.month)


def require(claim, *statuses):
    if claim.status not in statuses:
        raise Conflict(f"The claim is {claim.status}")
