"""Completed versions that are compatible with the analysis that is made of them."""
