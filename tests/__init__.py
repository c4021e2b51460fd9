"""The tests; they are a package, so that every test module can import `tests.support`."""
