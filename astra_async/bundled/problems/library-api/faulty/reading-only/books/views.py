"""What the library answers to requests."""

from django.db.models import Count, F, Q
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
        if query.get("available") in ("true", "false"):
            lent = Count("loans", filter=Q(loans__returned=False))
            queryset = queryset.annotate(lent=lent)
            if query["available"] == "true":
                queryset = queryset.filter(copies__gt=F("lent"))
            else:
                queryset = queryset.filter(copies__lte=F("lent"))
        return queryset
