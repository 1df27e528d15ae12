"""Clients of model providers. Built-in models are next to the code that they imitate, and are registered from there."""
