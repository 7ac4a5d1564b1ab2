"""What the library answers to requests."""

from rest_framework import mixins, viewsets
from rest_framework.pagination import PageNumberPagination

from books.models import Book
from books.serializers import BookSerializer


class FiveToAPage(PageNumberPagination):
    page_size = 5


class BookViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet,
):
    queryset = Book.objects.order_by("title", "id")
    serializer_class = BookSerializer
    pagination_class = FiveToAPage

    def filter_queryset(self, queryset):
        query = self.request.query_params
        if "author" in query:
            queryset = queryset.filter(author__icontains=query["author"])
        if query.get("year_from", "").isdigit():
            queryset = queryset.filter(year__gte=int(query["year_from"]))
        if query.get("year_to", "").isdigit():
            queryset = queryset.filter(year__lte=int(query["year_to"]))
        return queryset
