"""The filters of lists and reports, as they stand in a URL."""

import datetime
import re
from decimal import Decimal, InvalidOperation

from rest_framework.exceptions import ValidationError

from claims.models import Claim


def filtered(claims, query):
    """The claims that meet every filter of the query; blank filters are left out."""
    for name, read in FILTERS.items():
        value = query.get(name, "")
        if value:
            claims = claims.filter(**read(name, value))
    return claims


def in_month(name, value):
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}", value):
        raise invalid(name)
    year, month = map(int, value.split("-"))
    try:
        datetime.date(year, month, 1)
    except ValueError as error:
        raise invalid(name) from error
    return {"spent_on__year": year, "spent_on__month": month}


def one_of(choices):
    def read(name, value):
        if value not in choices.values:
            raise invalid(name)
        return {name: value}

    return read


def amount(lookup):
    def read(name, value):
        try:
            number = Decimal(value)
        except InvalidOperation as error:
            raise invalid(name) from error
        if not number.is_finite():
            raise invalid(name)
        return {lookup: number}

    return read


def invalid(name):
    return ValidationError({name: ["Invalid value"]})


FILTERS = {
    "status": one_of(Claim.Status),
    "category": one_of(Claim.Category),
    "month": in_month,
    "min_amount": amount("amount__gte"),
    "max_amount": amount("amount__lte"),
}
