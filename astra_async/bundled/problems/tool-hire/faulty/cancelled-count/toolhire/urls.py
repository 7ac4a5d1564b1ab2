"""The URLs of the tool hire."""

from django.http import JsonResponse
from django.urls import include, path


def status(request):
    return JsonResponse({"service": "tool-hire", "status": "up"})


urlpatterns = [
    path("api/status/", status),
    path("api/", include("hire.urls")),
]
