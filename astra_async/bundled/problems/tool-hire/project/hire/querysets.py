"""What the shop's models are asked."""

from django.db import models
