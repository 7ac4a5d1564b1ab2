"""How claims are read from requests and written to answers."""

from rest_framework import serializers

from claims.models import Claim
