"""The URLs of the library service."""

from django.http import JsonResponse
from django.urls import include, path
from rest_framework.routers import SimpleRouter

from books.views import BookViewSet

router = SimpleRouter()
router.register("books", BookViewSet)


def status(request):
    return JsonResponse({"service": "library", "status": "up"})


urlpatterns = [
    path("api/status/", status),
    path("api/", include(router.urls)),
]
