"""Requests to models: prompts, providers, the throttle of each model, batches and feedback."""
