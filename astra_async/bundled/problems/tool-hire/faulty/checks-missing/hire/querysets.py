"""What the shop's models are asked."""

from django.db import models, transaction
from django.db.models import Count, F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce


def price_of(daily_rate, days):
    """The price of a number of days, of which every seventh is free."""
    return daily_rate * (days - days // 7)


class BookingQuerySet(models.QuerySet):
    def active(self):
        return self.filter(cancelled=False)

    def overlapping(self, first_day, last_day):
        return self.filter(first_day__lte=last_day, last_day__gte=first_day)

    def book(self, tool, customer, first_day, last_day):
        with transaction.atomic():
            days = (last_day - first_day).days + 1
            return self.create(
                tool=tool,
                customer=customer,
                first_day=first_day,
                last_day=last_day,
                price=price_of(tool.daily_rate, days),
            )


class ToolQuerySet(models.QuerySet):
    def free(self, first_day, last_day):
        taken = self.model.objects.filter(
            bookings__cancelled=False,
            bookings__first_day__lte=last_day,
            bookings__last_day__gte=first_day,
        )
        return self.exclude(pk__in=taken.values("pk")).order_by("name")

    def with_usage(self, first_day, last_day):
        counted = Q(bookings__cancelled=False, bookings__first_day__range=(first_day, last_day))
        return self.annotate(
            times_booked=Count("bookings", filter=counted),
            revenue=Sum("bookings__price", filter=counted, default=0),
        )


class CustomerQuerySet(models.QuerySet):
    def with_balance(self):
        # Each sum has a query of its own: joined to both tables, every booking would count once for each payment.
        customers = self.model.objects.filter(pk=OuterRef("pk")).values("pk")
        booked = customers.annotate(sum=Sum("bookings__price", filter=Q(bookings__cancelled=False)))
        paid = customers.annotate(sum=Sum("payments__amount"))
        return self.annotate(
            booked=Coalesce(Subquery(booked.values("sum")), 0),
            paid=Coalesce(Subquery(paid.values("sum")), 0),
            balance=F("paid") - F("booked"),
        )

    def debtors(self):
        return self.with_balance().filter(balance__lt=0).order_by("balance", "name")
