"""The tests, as a package, so that `tests.support` can be imported from anywhere in it."""
