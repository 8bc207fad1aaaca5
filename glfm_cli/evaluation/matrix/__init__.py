"""How far predictions of a matrix that is given as triplets can be trusted."""
