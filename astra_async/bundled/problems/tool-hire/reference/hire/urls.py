"""The URLs below /api/."""

from django.urls import path

from hire import views

urlpatterns = [
    path("tools/free/", views.free_tools),
    path("revenue/<int:year>/", views.revenue),
    path("categories/", views.categories),
]
