"""The tests; a package, so that no other package called `tests` is taken for it."""
