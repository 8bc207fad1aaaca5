"""Running a latent model over the columns of a table, and what its draws say of cells."""
