"""Learning on graphs: maps of functions of vectors of numbers on vertices and edges, and algorithms made of them."""
