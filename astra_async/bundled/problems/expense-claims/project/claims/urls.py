"""The URLs below /api/."""

urlpatterns = []
