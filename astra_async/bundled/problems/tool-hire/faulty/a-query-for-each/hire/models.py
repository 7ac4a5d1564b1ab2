"""What the shop keeps: tools, customers, bookings and payments. Money is in whole cents."""

from django.db import models

from hire.querysets import BookingQuerySet, CustomerQuerySet, ToolQuerySet


class Tool(models.Model):
    name = models.CharField(max_length=100, unique=True)
    category = models.CharField(max_length=50)
    daily_rate = models.PositiveIntegerField()

    objects = ToolQuerySet.as_manager()

    def __str__(self):
        return self.name


class Customer(models.Model):
    name = models.CharField(max_length=100)

    objects = CustomerQuerySet.as_manager()

    def __str__(self):
        return self.name


class Booking(models.Model):
    """A tool in the hands of a customer, from the first day to the last; both belong to it."""

    tool = models.ForeignKey(Tool, related_name="bookings", on_delete=models.PROTECT)
    customer = models.ForeignKey(Customer, related_name="bookings", on_delete=models.PROTECT)
    first_day = models.DateField()
    last_day = models.DateField()
    price = models.PositiveIntegerField()
    cancelled = models.BooleanField(default=False)

    objects = BookingQuerySet.as_manager()

    def __str__(self):
        return f"{self.tool} from {self.first_day} to {self.last_day}"


class Payment(models.Model):
    customer = models.ForeignKey(Customer, related_name="payments", on_delete=models.PROTECT)
    amount = models.PositiveIntegerField()
    paid_on = models.DateField()

    def __str__(self):
        return f"{self.amount} of {self.customer}"
