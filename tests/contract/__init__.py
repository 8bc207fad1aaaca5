"""What every part promises, whoever wrote it."""
