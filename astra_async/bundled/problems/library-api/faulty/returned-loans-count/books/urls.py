"""The URLs below /api/."""

from rest_framework.routers import SimpleRouter

from books.views import BookViewSet

router = SimpleRouter()
router.register("books", BookViewSet)

urlpatterns = router.urls
