"""What the service answers to requests."""

from rest_framework import viewsets

from claims.models import Claim
from claims.serializers import ClaimSerializer
