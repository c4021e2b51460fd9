"""Capabilities beyond the core; each package contains everything for one capability.

The core works without this package, because no core module imports it.
"""
