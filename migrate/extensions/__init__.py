"""Capabilities beyond the core; each package contains everything that one capability needs.

The core works without this package, because no core module imports it.
"""
