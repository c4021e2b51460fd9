"""Targets: each turns a Plan without refusals into what the other side starts from."""
