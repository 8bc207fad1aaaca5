"""Statistical proofs: exact enumeration, joint-distribution tests, calibration."""
