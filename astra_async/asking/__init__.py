"""Asking a model: the prompt, the providers' wire formats, and the throttle of each pool."""
