"""The URLs below /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from claims.views import ClaimViewSet, report

router = SimpleRouter()
router.register("claims", ClaimViewSet, basename="claim")

urlpatterns = [path("report/", report), *router.urls]
