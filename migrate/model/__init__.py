"""Shared types and functions for positions, findings, policies, errors, and logging."""
