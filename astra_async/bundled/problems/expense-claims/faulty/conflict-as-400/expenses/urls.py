"""The URLs of the expense service."""

from django.http import JsonResponse
from django.urls import include, path


def status(request):
    return JsonResponse({"service": "expenses", "status": "up"})


urlpatterns = [
    path("api/status/", status),
    path("api/", include("claims.urls")),
]
