"""Departments, and what their people spent and want back."""

from django.conf import settings
from django.db import models


class Department(models.Model):
    """Users belong to departments as members; one of the users is the manager."""

    name = models.CharField(max_length=60, unique=True)
    manager = models.ForeignKey(settings.AUTH_USER_MODEL, related_name="manages", on_delete=models.PROTECT)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="departments")

    def __str__(self):
        return self.name


class Claim(models.Model):
    class Status(models.TextChoices):
        DRAFT = "draft"
        SUBMITTED = "submitted"
        APPROVED = "approved"
        REJECTED = "rejected"

    class Category(models.TextChoices):
        TRAVEL = "travel"
        MEALS = "meals"
        EQUIPMENT = "equipment"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, related_name="claims", on_delete=models.PROTECT)
    department = models.ForeignKey(Department, related_name="claims", on_delete=models.PROTECT)
    title = models.CharField(max_length=100)
    category = models.CharField(max_length=20, choices=Category.choices)
    amount = models.DecimalField(max_digits=8, decimal_places=2)
    spent_on = models.DateField()
    receipt = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.DRAFT)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, related_name="decisions", null=True, on_delete=models.PROTECT
    )
    reason = models.CharField(max_length=200, blank=True)

    def __str__(self):
        return f"{self.title} ({self.amount})"
