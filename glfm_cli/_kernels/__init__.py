"""Compiled kernels: arithmetic on arrays handed to them, without the GIL.

Python owns allocation, checks, loops over sweeps and messages; a kernel returns a status code.
"""
