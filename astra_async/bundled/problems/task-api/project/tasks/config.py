"""Settings of the service."""

import os


class Config:
    SECRET_KEY = os.environ.get("SECRET_KEY", "only-for-development-and-long-enough")
    TOKEN_ALGORITHM = "HS256"
    TOKEN_LIFETIME_S = 3600
