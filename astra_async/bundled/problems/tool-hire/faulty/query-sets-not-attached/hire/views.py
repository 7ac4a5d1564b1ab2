"""What the shop answers to requests."""

from datetime import date

from django.db.models import Count, Q, Sum
from django.db.models.functions import ExtractMonth
from django.http import JsonResponse

from hire.models import Booking, Tool


def period_of(query):
    """The period that a request asks for. Raises ValueError when it is none."""
    first_day, last_day = (date.fromisoformat(query.get(name, "")) for name in ("from", "to"))
    if last_day < first_day:
        raise ValueError("to lies before from")
    return first_day, last_day


def free_tools(request):
    try:
        period = period_of(request.GET)
    except ValueError:
        return JsonResponse({"error": "Invalid period"}, status=400)
    tools = Tool.objects.free(*period)
    if "category" in request.GET:
        tools = tools.filter(category=request.GET["category"])
    return JsonResponse(list(tools.values("id", "name", "category", "daily_rate")), safe=False)


def revenue(request, year):
    months = (
        Booking.objects.active()
        .filter(first_day__year=year)
        .values_list(ExtractMonth("first_day"))
        .annotate(revenue=Sum("price"))
    )
    by_month = dict(months)
    answer = [{"month": f"{year}-{month:02}", "revenue": by_month.get(month, 0)} for month in range(1, 13)]
    return JsonResponse(answer, safe=False)


def categories(request):
    active = Q(bookings__cancelled=False)
    found = (
        Tool.objects.order_by("category")
        .values("category")
        .annotate(
            tools=Count("id", distinct=True),
            booked=Count("bookings", filter=active),
            revenue=Sum("bookings__price", filter=active, default=0),
        )
    )
    # A model's relation has the name `bookings` already, so no annotation can have it.
    for row in found:
        row["bookings"] = row.pop("booked")
    return JsonResponse(list(found), safe=False)
