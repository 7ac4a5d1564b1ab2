"""What the service answers to requests."""

from django.db.models import Q, Sum
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from claims.models import Claim
from claims.serializers import ClaimSerializer

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
        user = self.request.user
        claims = Claim.objects.select_related("owner", "department", "decided_by")
        shared = Q() if user.is_staff else Q(department__manager=user)
        return claims.filter(Q(owner=user) | (shared & ~Q(status=Status.DRAFT)))

    def list(self, request):
        claims = self.get_queryset().order_by("-spent_on", "-id")
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

    def own_claim(self):
        """The claim, which belongs to the user and is not under way."""
        claim = self.get_object()
        if claim.owner != self.request.user:
            raise PermissionDenied
        return require(claim, Status.DRAFT, Status.REJECTED)

    def change(self, claim, **fields):
        for name, value in fields.items():
            setattr(claim, name, value)
        claim.save()
        return Response(self.get_serializer(claim).data)


def require(claim, *statuses):
    if claim.status not in statuses:
        raise Conflict(f"The claim is {claim.status}")
    return claim


def total(claims):
    return f"{claims.aggregate(sum=Sum('amount'))['sum'] or 0:.2f}"
