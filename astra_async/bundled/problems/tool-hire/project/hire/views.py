"""What the shop answers to requests."""

from django.http import JsonResponse

from hire.models import Booking, Tool
