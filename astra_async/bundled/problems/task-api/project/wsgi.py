"""The application for a web server."""

from tasks import create_app

app = create_app()
