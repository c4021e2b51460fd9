"""Capabilities beyond the core; each package holds everything of one capability.

The core works without this package: no module of the core imports it.
"""
