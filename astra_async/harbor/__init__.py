"""Tasks in the format of Harbor: see docs/harbor.md."""
