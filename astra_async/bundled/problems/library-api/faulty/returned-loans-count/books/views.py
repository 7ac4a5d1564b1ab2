"""What the library answers to requests."""

from django.db.models import Count, F
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.pagination import PageNumberPagination
from rest_framework.permissions import AllowAny, IsAdminUser, IsAuthenticated
from rest_framework.response import Response

from books.models import Book, Loan
from books.serializers import BookSerializer, LoanSerializer


class FiveToAPage(PageNumberPagination):
    page_size = 5


def conflict(detail):
    return Response({"detail": detail}, status=409)


class BookViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    mixins.CreateModelMixin,
    viewsets.GenericViewSet,
):
    queryset = Book.objects.order_by("title", "id")
    serializer_class = BookSerializer
    pagination_class = FiveToAPage

    def get_permissions(self):
        if self.action == "create":
            return [IsAdminUser()]
        if self.action in ("borrow", "give_back"):
            return [IsAuthenticated()]
        return [AllowAny()]

    def filter_queryset(self, queryset):
        query = self.request.query_params
        if "author" in query:
            queryset = queryset.filter(author__icontains=query["author"])
        if query.get("available") in ("true", "false"):
            lent = Count("loans")
            queryset = queryset.annotate(lent=lent)
            if query["available"] == "true":
                queryset = queryset.filter(copies__gt=F("lent"))
            else:
                queryset = queryset.filter(copies__lte=F("lent"))
        return queryset

    @action(detail=True, methods=["post"])
    def borrow(self, request, pk):
        book = self.get_object()
        lent = book.loans.all()
        if lent.filter(borrower=request.user).exists():
            return conflict("Already borrowed")
        if lent.count() >= book.copies:
            return conflict("No copy available")
        loan = Loan.objects.create(book=book, borrower=request.user)
        return Response(LoanSerializer(loan).data, status=201)

    @action(detail=True, methods=["post"], url_path="return")
    def give_back(self, request, pk):
        loan = self.get_object().loans.filter(borrower=request.user, returned=False).first()
        if loan is None:
            return conflict("Not borrowed")
        loan.returned = True
        loan.save()
        return Response(LoanSerializer(loan).data)
