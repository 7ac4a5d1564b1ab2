"""The URLs of the expense service."""

from django.http import JsonResponse
from django.urls import include, path
from rest_framework.routers import SimpleRouter

from claims.views import ClaimViewSet

router = SimpleRouter()
router.register("claims", ClaimViewSet, basename="claim")


def status(request):
    return JsonResponse({"service": "expenses", "status": "up"})


urlpatterns = [
    path("api/status/", status),
    path("api/", include(router.urls)),
]
