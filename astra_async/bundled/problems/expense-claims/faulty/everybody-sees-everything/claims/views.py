"""What the service answers to requests."""

from decimal import Decimal

from django.db.models import Count, Q, Sum
from rest_framework import mixins, viewsets
from rest_framework.decorators import action, api_view, permission_classes
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.permissions import IsAdminUser, IsAuthenticated
from rest_framework.response import Response

from claims.filters import filtered, in_month
from claims.models import Claim, Department
from claims.serializers import ClaimSerializer

MANAGERS_UP_TO = Decimal("1000.00")
Status = Claim.Status


class Conflict(APIException):
    status_code = 409


class ClaimViewSet(
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    viewsets.GenericViewSet,
):
    serializer_class = ClaimSerializer
    permission_classes = [IsAuthenticated]
    http_method_names = ["get", "post", "patch"]

    def get_queryset(self):
        return Claim.objects.select_related("owner", "department", "decided_by")

    def list(self, request):
        claims = filtered(self.get_queryset(), request.query_params).order_by("-spent_on", "-id")
        results = self.get_serializer(claims, many=True).data
        return Response({"count": len(results), "total": total(claims), "results": results})

    def perform_create(self, serializer):
        user = self.request.user
        serializer.save(owner=user, department=user.departments.first())

    def update(self, request, *args, **kwargs):
        self.own_claim()
        return super().update(request, *args, **kwargs)

    @action(detail=True, methods=["post"])
    def submit(self, request, pk):
        claim = self.own_claim()
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

    def own_claim(self):
        """The claim, which belongs to the user and is not under way."""
        claim = self.get_object()
        if claim.owner != self.request.user:
            raise PermissionDenied
        return require(claim, Status.DRAFT, Status.REJECTED)

    def claim_to_decide(self):
        """The claim, which is submitted and for the user to decide on."""
        claim = self.get_object()
        user = self.request.user
        manages = claim.department.manager == user and claim.amount <= MANAGERS_UP_TO
        if claim.owner == user or not (user.is_staff or manages):
            raise PermissionDenied
        return require(claim, Status.SUBMITTED)

    def change(self, claim, **fields):
        for name, value in fields.items():
            setattr(claim, name, value)
        claim.save()
        return Response(self.get_serializer(claim).data)


@api_view(["GET"])
@permission_classes([IsAdminUser])
def report(request):
    month = in_month("month", request.query_params.get("month", ""))
    approved = Q(claims__status=Status.APPROVED) & Q(
        **{f"claims__{name}": value for name, value in month.items()}
    )
    departments = Department.objects.annotate(
        approved=Count("claims", filter=approved), total=Sum("claims__amount", filter=approved)
    )
    return Response(
        [
            {"department": each.name, "claims": each.approved, "total": f"{each.total or 0:.2f}"}
            for each in departments.order_by("name")
        ]
    )


def require(claim, *statuses):
    if claim.status not in statuses:
        raise Conflict(f"The claim is {claim.status}")
    return claim


def total(claims):
    return f"{claims.aggregate(sum=Sum('amount'))['sum'] or 0:.2f}"
