"""The URLs of the library service."""

from django.http import JsonResponse
from django.urls import path


def status(request):
    return JsonResponse({"service": "library", "status": "up"})


urlpatterns = [
    path("api/status/", status),
]
