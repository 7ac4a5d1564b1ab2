"""The URLs below /api/."""

from rest_framework.routers import SimpleRouter

from claims.views import ClaimViewSet

router = SimpleRouter()
router.register("claims", ClaimViewSet, basename="claim")

urlpatterns = router.urls
